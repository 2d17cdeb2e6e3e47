//! What the book's pages say of the emulated GPU is what the code says.

#[test]
fn the_page_is_what_the_code_says() {
    let page = include_str!("../../../book/src/emulated-gpu-scope.md");
    let hint = "cargo run -p emulator -- --scope > book/src/emulated-gpu-scope.md";
    assert!(page == emulator::scope(), "the page is out of date: {hint}");
}

#[test]
fn the_page_names_every_setting() {
    let page = include_str!("../../../book/src/emulated-gpu.md");
    for setting in emulator::settings::SETTINGS {
        let row = format!("| `{}` |", setting.name);
        assert!(page.lines().any(|line| line.starts_with(&row)), "the page does not name {}", setting.name);
    }
}
