//! The byte format under generated and under hostile input: what is encoded decodes to the same,
//! and what is decoded never panics, never allocates beyond its size, and means what it says.

mod forge;
mod hostile;
mod limits;
mod model;
mod pieces;
mod round_trip;
