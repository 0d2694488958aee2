//! What the compiler says where a derive is used in a wrong way. No case gets as far as the crate burn-pinned, so none needs it.

#[test]
fn errors_point_at_the_field() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
