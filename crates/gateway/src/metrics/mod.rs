//! The status as Prometheus reads it: text, over HTTP.
//!
//! | file | what it holds |
//! |---|---|
//! | `text` | the text format, version 0.0.4 |
//! | `server` | an HTTP server for one page, which believes nobody |

mod server;
mod text;

pub(crate) use server::{Server, nudge};
pub(crate) use text::text;
