//! The items of each class, for samplers that take labels.

use crate::{
    fault::Error,
    order::draw::{Fingerprint, PackedList, listed, no_memory},
};
use std::{collections::BTreeMap, sync::Arc};

/// Returns the items of each class, in the order of the labels, and what identifies them.
///
/// # Errors
/// [`Error::Config`] if there are no labels, or no memory for them.
pub(super) fn by_class<L: Ord>(
    option: &'static str,
    labels: impl IntoIterator<Item = L>,
) -> Result<(Arc<[PackedList]>, Fingerprint), Error> {
    let labels = labels.into_iter();
    // Without memory for all of them it fails here, not after so many labels as there is memory for.
    listed::<u32>(option, labels.size_hint().0, [])?;
    let mut members = BTreeMap::<L, PackedList>::new();
    for (item, label) in labels.enumerate() {
        let added = members.entry(label).or_insert(PackedList::EMPTY).add(item);
        added.map_err(|error| no_memory(option, item, &error))?;
    }
    if members.is_empty() {
        return Err(Error::config(option, "there are no labels", "give one for each item"));
    }
    let classes: Arc<[PackedList]> = members.into_values().collect();
    let ends = classes.iter().scan(0, |end, items| {
        *end += items.len();
        Some(*end)
    });
    let numbers = classes.iter().flat_map(PackedList::iter).chain(ends);
    let fingerprint = Fingerprint::of(numbers.map(|number| number as u64));
    Ok((classes, fingerprint))
}
