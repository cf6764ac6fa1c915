//! Everything but the sockets, for the fuzz target: a front-end's messages and a guest's memory.
