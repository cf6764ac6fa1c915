//! GOST 28147-89 over vectors. See [`engine`](crate::gost28147::engine) for what the
//! schedulers are offered here.

mod lone;
mod planes;
mod words;

pub(crate) use planes::Planes;
pub(crate) use words::WideWords;
