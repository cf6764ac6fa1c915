# make run    build, then the main job: measure this machine, and encrypt a file with it
# make test   every test; installs the Debian packages that they need, saying so
# make lint   formatting, clippy and documentation, warnings denied
# make bench  the benches of bench/, into bench/results/
# make fuzz   every fuzz target for some seconds
# make soak   long runs: many more cases of every property test, and stress

.PHONY: run build test lint bench fuzz soak constant-time loom miri openssl-3.5

CIPHERLANE := target/release/cipherlane
# One core is dedicated to the cores driver where there are two or more.
CORES := $(shell n=$$(nproc); if [ $$n -gt 2 ]; then echo 1-$$((n - 1)); elif [ $$n -eq 2 ]; then echo 1; fi)
DEDICATED := $(if $(CORES),--cores $(CORES))

build:
	scripts/needs build
	cargo build --release --bin cipherlane

run: build
	$(CIPHERLANE) $(DEDICATED) speed 'gcm(aes)' 'ctr(aes)' 'cbc(aes)' 'xts(aes)' \
		--batch 1 --html target/speed.html
	@echo "The same with charts: target/speed.html"
	scripts/encrypt-a-file $(CIPHERLANE) $(DEDICATED)

test:
	scripts/needs build test
	cargo test --workspace --no-fail-fast
	$(MAKE) constant-time fuzz loom miri openssl-3.5

# The optimised kernels under valgrind, with keys and data marked undefined. The crates
# below the portable path are kept to plain code, which is all that other machines have.
PLAIN := $(foreach crate,aes chacha20 poly1305 polyval sha2,--cfg $(crate)_backend="soft")
constant-time:
	scripts/needs build test
	RUSTFLAGS='--cfg cipherlane_cpu_disable $(PLAIN)' cargo test --release \
		--target-dir target/constant-time -p cipherlane-kernels --test constant_time -- --nocapture

# Without cargo-fuzz; where it is installed, "cargo fuzz run TARGET" works as well.
fuzz:
	scripts/needs build fuzz
	scripts/fuzz

# Every interleaving of the lock-free parts.
loom:
	RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom \
		-p cipherlane-drivers -p cipherlane-esp --release --lib loom

# The framework under Miri, where the toolchain has it.
miri:
	scripts/miri

# The provider in an OpenSSL 3.5, whose libcrypto is built for it. It is the provider that
# the other tests use: built by itself it would be compiled anew, kernels and all.
OPENSSL_3_5 := --manifest-path crates/provider/openssl-3.5/Cargo.toml --target-dir target/openssl-3.5
openssl-3.5:
	scripts/needs build test
	cargo test --workspace --no-run
	cargo test $(OPENSSL_3_5)

lint:
	scripts/needs build
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path bench/rust-peers/Cargo.toml --check
	cargo fmt --manifest-path crates/provider/openssl-3.5/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

bench: build
	scripts/needs test
	bench/run

soak:
	scripts/needs build test fuzz
	PROPTEST_CASES=20000 cargo test --workspace --release
	PROPTEST_CASES=20000 cargo test --release --manifest-path bench/rust-peers/Cargo.toml \
		--target-dir target/rust-peers
	scripts/fuzz 30
	cargo run --release -p cipherlane-kernels --example timing 1000
