//! The sandbox's helper as a program of its own, for tests and benches; artoo itself is its own helper (design §9).

fn main() {
    artoo_executor::sandbox::enter_if_asked();
    eprintln!("artoo-sandbox: it is started by artoo, with the command that it confines");
    std::process::exit(2);
}
