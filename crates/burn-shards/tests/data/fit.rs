//! What row types make of columns: of good values, of bad ones, and of those that are not there.

mod first_rows;
mod lists;
mod messages;
mod names;
mod numbers;

use burn_pinned_made::write;
