//! Unmodified programs with the provider named in their OpenSSL configuration: what they
//! compute is right, and the provider's counters show that it did the work.
//!
//! `docs/programs.md` names the programs, their versions, and those that are excluded.
//!
//! | file | what is in it |
//! |---|---|
//! | `place` | a folder with a configuration of OpenSSL, and counters |
//! | `ends` | the provider at the client, at the server, at both, and the proof of who worked |
//! | `running`, `network` | programs beside the test; two network namespaces |
//! | `observer` | counters of programs that end by `_exit` |
//! | `ssh` | OpenSSH |
//! | `pairs` | servers and clients that speak TLS |
//! | `strongswan`, `vpn` (`openvpn`), `ntpsec`, `node` | what needs more than a row of `pairs` |
//! | `languages`, `storage`, `tor` | programs of `make soak`: PHP, Ruby, Erlang; what keeps data encrypted |
//! | `subcommands`, `enc`, `tls`, `large`, `evp_test` | `openssl` itself |
//! | `curl` (`nginx`), `python` | every suite, every worker; both ends in one process |
//! | `excluded` | programs whose ciphers come from elsewhere |

mod certificate;
mod curl;
mod enc;
mod ends;
mod evp_test;
mod excluded;
mod languages;
mod large;
mod network;
mod nginx;
mod node;
mod ntpsec;
mod observer;
mod openvpn;
mod pairs;
mod place;
mod python;
mod running;
mod ssh;
mod storage;
mod strongswan;
mod subcommands;
mod tls;
mod tor;
mod vpn;
