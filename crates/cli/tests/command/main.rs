//! The command as its users see it: the built program, in a directory of its own.

mod enc;
mod enc_failures;
mod openssl;
mod others;
mod place;
