//! The book's page of the emulated GPU's scope is what the program prints.

#[test]
fn the_page_is_what_the_code_says() {
    let page = include_str!("../../../book/src/emulated-gpu-scope.md");
    let hint = "cargo run -p emulator -- --scope > book/src/emulated-gpu-scope.md";
    assert!(page == emulator::scope(), "the page is out of date: {hint}");
}
