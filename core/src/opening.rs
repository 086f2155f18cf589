//! The Opening machine (DESIGN.md section 4).
use crate::catalog::Catalog;
use crate::*;
/// What an opening hands to the writer.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// To be written.
    pub prefix: Prefix,
    /// To be written.
    pub options: Options,
    /// To be written.
    pub catalog: Catalog,
    /// To be written.
    pub start: Link,
    /// To be written.
    pub next_sequence: ObjectSeq,
    /// To be written.
    pub next_request: RequestId,
    /// To be written.
    pub recovered_objects: u64,
    /// To be written.
    pub took: core::time::Duration,
}
