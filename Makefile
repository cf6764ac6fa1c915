# make build  the command, the provider for OpenSSL and the library for C: target/release/cipherlane,
#             cipherlane.so, libcipherlane.so
# make provider  the provider alone
# make c-library the library for C: target/release/libcipherlane.so, crates/capi/include/cipherlane.h
# make install-c-library PREFIX=/usr/local    the same for all programs, with a file for pkg-config
# make charon-plugin   the plugin by which strongSwan's charon drives the gateway
# make run    build, then the main job: measure this machine, and encrypt a file with it
# make test   every test; installs the Debian packages that they need, saying so
# make lint   formatting, clippy and documentation, warnings denied; what dependencies may be; large copies;
#             loads that wait
# make figures   the pictures of the documents, from results in bench/results/ and kept recordings
# make large-moves   large copies on the data path, in the machine code
# make split-stores  loads of the provider that wait for what was stored in parts
# make bench  the benches of bench/, into bench/results/
# make fuzz   every fuzz target for some seconds
# make guest  what is checked in a Linux guest under QEMU: a line for each check
# make gateway-interop
#             the gateway against IPsec that others have written: a line for each test
# make soak   long runs: many more cases of every property test, and stress
# make sbom   what the programs are built of, as SPDX, into target/cipherlane.spdx.json
# make advisories   dependencies against the newest list of known vulnerabilities
# make test-as MACHINE
#             every test as if on another machine: zen5 (or avx512), zen3, haswell, westmere, x86-64-v2-aes, none

.PHONY: run build provider c-library install-c-library charon-plugin test guest gateway-interop lint large-moves split-stores figures bench fuzz soak sbom advisories constant-time loom miri sanitize openssl-3.5 test-as \
	guest-checks test-as-zen3

CIPHERLANE := target/release/cipherlane
# One core is dedicated to the cores driver where there are two or more.
CORES := $(shell n=$$(nproc); if [ $$n -gt 2 ]; then echo 1-$$((n - 1)); elif [ $$n -eq 2 ]; then echo 1; fi)
DEDICATED := $(if $(CORES),--cores $(CORES))

# OpenSSL looks for the provider cipherlane in a file of that name; cargo puts 'lib' before it.
PROVIDER := target/release/cipherlane.so
NAME_PROVIDER = scripts/separate-symbols target/release/libcipherlane_provider.so $(PROVIDER)
BUILD = cargo build --release --workspace --bin cipherlane --lib
# What users get has no symbols; they stand beside it in FILE.debug. cargo lays the program with
# its symbols there again at its next build.
SEPARATE = scripts/separate-symbols $(CIPHERLANE) && $(NAME_PROVIDER) && $(NAME_C_LIBRARY)
C_LIBRARY := target/release/libcipherlane_capi.so
NAME_C_LIBRARY = scripts/c-library $(C_LIBRARY)

build:
	scripts/needs build
	$(BUILD)
	$(SEPARATE)

provider:
	scripts/needs build
	cargo build --release -p cipherlane-provider
	$(NAME_PROVIDER)
	@echo "$(PROVIDER) is the provider; 'cipherlane openssl env' and 'install' find it there."

c-library:
	scripts/needs build
	cargo build --release -p cipherlane-capi
	$(NAME_C_LIBRARY)
	@echo "Compile with: PKG_CONFIG_PATH=$(CURDIR)/target/release/pkgconfig pkg-config --cflags --libs cipherlane"

PREFIX ?= /usr/local
install-c-library: c-library
	scripts/c-library $(C_LIBRARY) $(PREFIX)

charon-plugin:
	scripts/needs charon
	scripts/charon-plugin

run: build
	$(CIPHERLANE) $(DEDICATED) speed 'gcm(aes)' 'ctr(aes)' 'cbc(aes)' 'xts(aes)' \
		--batch 1 --html target/speed.html
	@echo "The same with charts: target/speed.html"
	scripts/encrypt-a-file $(CIPHERLANE) $(DEDICATED)
	@echo 'Programs of this shell that use OpenSSL: eval "$$($(CIPHERLANE) openssl env)"'

test:
	scripts/needs build test guest charon fuzz
	cargo test --workspace --no-fail-fast --lib --bins $(addprefix --test ,$(filter-out $(WAITING),$(TESTS)))
	cargo test --workspace --no-fail-fast --doc
	RUST_TEST_THREADS=$$(($$(nproc) * 2)) cargo test --workspace --no-fail-fast $(addprefix --test ,$(WAITING))
	cargo build --workspace --examples
	scripts/examples
	@echo 'The rest runs two at a time. Each shows what it has printed when it ends.'
	$(MAKE) --jobs=2 --output-sync=target guest-checks fuzz miri constant-time loom test-as-zen3 openssl-3.5

# Tests that wait most of all, for peers, timers and programs: two per processor.
# All others run as many at a time as there are processors.
WAITING := gateway
TESTS := $(sort $(basename $(notdir $(wildcard crates/*/tests/*.rs))) \
	$(notdir $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs))))

# Guests and Miri take one processor, builds take all: side by side they leave none idle. What takes longest comes
# first.
guest-checks:
	scripts/guest-checks
test-as-zen3:
	scripts/test-as zen3 --workspace --no-fail-fast $(PER_PROCESSOR)

# Guests have the kernel's own IPsec; QEMU emulates their processor, so they are slow and need
# nothing of this machine.
guest:
	scripts/needs build test guest
	scripts/guest-checks all

gateway-interop:
	scripts/needs build test guest charon
	scripts/gateway-interop

# The tests of what depends on the processor. Those that stand on the whole of a program, or
# that wait, say nothing more on another one.
PER_PROCESSOR := --lib --test left_behind --test wipe --test peers --test differential \
	--test fast_path --test gost_mgm --test gost_imit --test round_trip --test vectors --test evp

# "make test-as zen3": the second word is the machine and no target of its own.
ifeq (test-as,$(firstword $(MAKECMDGOALS)))
MACHINE ?= $(wordlist 2,2,$(MAKECMDGOALS))
ifneq (,$(MACHINE))
.PHONY: $(MACHINE)
$(MACHINE):
	@:
endif
endif
test-as:
	scripts/needs build test
	scripts/test-as $(MACHINE)

# The optimised kernels under valgrind, with keys and data marked undefined. The crates
# below the portable path are kept to plain code, which is all that other machines have. The
# release build too leaves no key deeper on the stack than wipe_stack wipes, and one message goes
# no deeper than is wiped with its key.
PLAIN := $(foreach crate,aes chacha20 poly1305 polyval sha2,--cfg $(crate)_backend="soft")
constant-time:
	scripts/needs build test
	RUSTFLAGS='--cfg cipherlane_cpu_disable $(PLAIN)' cargo test --release \
		--target-dir target/constant-time -p cipherlane-kernels \
		--test constant_time --test left_behind -- --nocapture

# Without cargo-fuzz; where it is installed, "cargo fuzz run TARGET" works as well.
fuzz:
	scripts/needs build fuzz
	scripts/fuzz

# Every interleaving of the lock-free parts, which encrypt nothing: to optimise kernels takes minutes.
NO_KERNELS := $(foreach crate,kernels core,--config profile.release.package.cipherlane-$(crate).opt-level=0)
loom:
	RUSTFLAGS="--cfg loom" cargo test --target-dir target/loom $(NO_KERNELS) \
		-p cipherlane-drivers -p cipherlane-esp --release --lib loom

# The framework under Miri, where the toolchain has it.
miri:
	scripts/miri

# What Miri cannot run, under the address and thread sanitizers.
sanitize:
	scripts/needs build
	scripts/sanitize address
	scripts/sanitize thread

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
	scripts/deny
	$(MAKE) large-moves
	$(MAKE) split-stores

# Copies and clears of more than 512 bytes on the data path, in the build that "make run" has made.
large-moves:
	scripts/needs build lint
	$(BUILD)
	scripts/large-moves $(CIPHERLANE) target/release/libcipherlane_provider.so $(C_LIBRARY)
	$(SEPARATE)

# Loads that wait for stores, in the same build, whose symbols say where.
split-stores:
	scripts/needs build lint
	$(BUILD)
	scripts/split-stores target/release/libcipherlane_provider.so
	$(SEPARATE)

# Drawn from the results that bench/run left, so that picture and figures are of one run.
FIGURES := bench/results/2026-11-26-zen5-peers.json
FIGURE := gcm(aes), 128-bit key, encrypt, 16 requests per batch
THREADS := $(wildcard bench/results/2026-11-26-xeon16-esp-*.json)
# Name, times, title, and of A and B a name and a recording.
RECORDINGS := crates/profile/tests/recordings
WHY = cargo run --quiet --example why -- $(2) '$(3)' '$(4)' $(RECORDINGS)/$(5).json '$(6)' $(RECORDINGS)/$(7).json \
	>docs/figures/why-$(1).svg.new && mv docs/figures/why-$(1).svg.new docs/figures/why-$(1).svg
figures:
	scripts/needs build
	mkdir -p docs/figures
	cargo run --quiet --example figure -- '$(FIGURE)' <$(FIGURES) >docs/figures/gcm.svg.new
	mv docs/figures/gcm.svg.new docs/figures/gcm.svg
	cargo run --quiet --example threads -- 1400 32 $(THREADS) >docs/figures/esp-threads.svg.new
	mv docs/figures/esp-threads.svg.new docs/figures/esp-threads.svg
	$(call WHY,engine,all,OpenVPN and an engine that is slower,software,vpn-software,the AM335x engine,vpn-engine)
	$(call WHY,pipe,all,A pipe before the cipher,through a pipe,through-pipe,from the file,from-file)
	$(call WHY,file,all,A large file on two cores,both for the program,file-software,one for the cipher,file-cores)
	$(call WHY,vpn,processor,Two VPNs,wireguard-go,wireguard-go,cipherlane gateway,gateway)

sbom:
	scripts/needs build
	mkdir -p target
	$$(scripts/cargo-tool cargo-sbom 0.10.0) --output-format spdx_json_2_3 >target/cipherlane.spdx.json

advisories:
	scripts/needs build
	scripts/deny advisories

bench: build
	scripts/needs test
	bench/run

soak:
	scripts/needs build test programs fuzz foreign
	CIPHERLANE_SOAK=1 PROPTEST_CASES=20000 cargo test --workspace --release
	PROPTEST_CASES=20000 cargo test --release --manifest-path bench/rust-peers/Cargo.toml \
		--target-dir target/rust-peers
	# Ten million calls to the provider and to OpenSSL's own.
	PROPTEST_CASES=300000 cargo test --workspace --release --test evp -- --nocapture \
		sequences::any_calls
	cargo test --workspace --release --test record -- --ignored --nocapture identical_runs
	CIPHERLANE_GATEWAY_SECONDS=1800 cargo test --workspace --release --test gateway -- \
		--nocapture soak::
	CIPHERLANE_REKEY_SECONDS=300 cargo test --workspace --release --test gateway -- \
		--nocapture load::
	scripts/test-as avx512
	scripts/test-as haswell
	TEST_AS_QEMU=1 scripts/test-as westmere
	TEST_AS_QEMU=1 scripts/test-as x86-64-v2-aes
	TEST_AS_QEMU=1 scripts/test-as none
	scripts/foreign
	scripts/fuzz 30
	scripts/miri all
	scripts/sanitize address all
	scripts/sanitize thread all
	cargo run --release -p cipherlane-kernels --example timing 1000
