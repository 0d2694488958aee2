//! Classifies the nodes of a schema.

use parquet::{
    basic::{ConvertedType, LogicalType, Repetition},
    schema::types::Type,
};

pub(crate) fn is(node: &Type, repetition: Repetition) -> bool {
    let info = node.get_basic_info();
    info.has_repetition() && info.repetition() == repetition
}

pub(crate) fn is_map(node: &Type) -> bool {
    let info = node.get_basic_info();
    matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
        || matches!(info.logical_type_ref(), Some(LogicalType::Map))
}

pub(crate) fn is_list(node: &Type) -> bool {
    let info = node.get_basic_info();
    let marked =
        info.converted_type() == ConvertedType::LIST || matches!(info.logical_type_ref(), Some(LogicalType::List));
    marked && matches!(node.get_fields(), [repeated] if is(repeated, Repetition::REPEATED))
}

/// Whether the repeated node of a list is the element itself, as in files of old writers.
pub(crate) fn is_old_list(list: &Type) -> bool {
    let Some(repeated) = list.get_fields().first() else { return false };
    let name = repeated.name();
    let struct_of_one = name == "array" || name.strip_suffix("_tuple").is_some_and(|start| start == list.name());
    !repeated.is_group() || repeated.get_fields().len() != 1 || struct_of_one
}

/// The element of a list.
pub(crate) fn element(list: &Type) -> Option<&Type> {
    let repeated = list.get_fields().first()?;
    if is_old_list(list) { Some(repeated) } else { repeated.get_fields().first().map(|element| &**element) }
}

/// How many leaves a node has.
pub(crate) fn leaves(node: &Type) -> usize {
    if node.is_group() { node.get_fields().iter().map(|field| leaves(field)).sum() } else { 1 }
}
