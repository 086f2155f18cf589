//! What the shells of Sealog do alike, without a runtime of their own.
//!
//! A shell owns I/O and time, and decides nothing: the rules live in `sealog-core`. What is left
//! to do is here, once for all shells:
//!
//! - [`open`] opens a log and gives its actor, the future that owns the machine and carries its
//!   effects out, and its first handle, a [`Log`]. What a runtime is needed for, a shell lends
//!   as a [`Runtime`].
//! - [`Reader::open`] opens one to read it, beside whoever writes it; [`survey`] and [`fetch`] look
//!   at what is stored, for tools.
//! - [`carry_out`] does one storage effect once and answers it once, within a time limit whose
//!   timer the caller passes in as a future.
//! - [`store_error`] maps the client's errors to the kinds that the core tells apart, and
//!   [`ClientFailure`] has the client's error itself.
//! - [`open_local`] and [`open_url`] turn a directory or a URL into a store and a prefix;
//!   [`read_local`] and [`read_url`] do for who only reads, and make nothing.
//! - [`keep`] and [`replace`] carry out a repair: the one thing that replaces a key.
//! - [`check_store`] finds out whether a log may live in a store, in a place beside the log that
//!   [`scratch_local`] and [`scratch_url`] give; [`clear`] deletes a log that a tool made.
//! - [`identity`] is what an opening must know of the process.
//! - [`tell_operator`] writes a notice to `tracing`, and [`Figures`] exports the figures of a log
//!   through `metrics`, each behind the feature of that name.
//!
//! This is DESIGN.md section 1, "What a shell does with a storage effect, and no more". An
//! application uses one of the shells, for instance `sealog-tokio`, rather than this crate.

mod check;
mod clock;
mod effect;
mod error;
mod figures;
mod identity;
mod local;
mod log;
mod notice;
mod open;
mod quarantine;

pub use check::{Checked, Demand, MANY, RACING, StoreCheck, check_store, clear};
pub use clock::Suspended;
pub use effect::{carry_out, keys_per_delete};
pub use error::{ClientFailure, store_error};
pub use figures::Figures;
pub use identity::identity;
pub use log::{
    DurableWatch, Log, Read, ReadItem, Reader, Replay, ReplayItem, Runtime, Submission, fetch,
    open, survey,
};
pub use notice::tell_operator;
pub use open::{
    Location, environment, open_local, open_url, read_local, read_url, scratch_local, scratch_url,
};
pub use quarantine::{keep, replace};
