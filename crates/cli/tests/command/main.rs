//! The command as its users see it: the built program, in a directory of its own.

mod check;
mod enc;
mod enc_devices;
mod enc_failures;
mod esp_perf;
mod files;
mod openssl;
mod others;
mod place;
mod plan;
mod profile;
#[path = "../support/provider.rs"]
mod provider;
#[path = "../support/schema.rs"]
mod schema;
mod schemas;
mod secrets;
mod speed;
