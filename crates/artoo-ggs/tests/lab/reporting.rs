//! What people read: CSV, Markdown, pictures and the page.

use artoo_ggs::lab::report::{csv, markdown, page, plots};
use artoo_ggs::lab::tune::sensitivity::sweeps;
use artoo_ggs::lab::{Family, Grid, contenders};

#[test]
fn the_same_numbers_stand_in_every_form_and_nothing_is_fetched_from_elsewhere() {
    let grid = Grid {
        seed: 2,
        tasks: 20,
        families: vec![Family::Easy, Family::Mix],
        skills: vec![0.5],
        contenders: contenders(),
    };
    let rows = grid.run(|_| {});
    let table = csv(&rows);
    assert_eq!(table.lines().count(), rows.len() + 1);
    let columns = table.lines().next().unwrap().split(',').count();
    assert_eq!(columns, 5 + 8 * 3);
    let markdown = markdown(&rows);
    let page = page(&rows, "artoo ggs simulate <x>");
    for contender in contenders() {
        assert!(markdown.contains(&format!("| {} |", contender.name)));
        assert!(page.contains(&contender.name));
    }
    assert!(page.contains("&lt;x&gt;") && page.matches("<svg").count() == 4);
    for elsewhere in ["<script", "http://", "https://", "src=", "<link"] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(elsewhere), "{elsewhere}");
    }
    assert!(!page.contains("no picture"));
    let swept = sweeps(&artoo_ggs::Params::default(), 4, |params| params.delta.get());
    assert_eq!((swept.len(), swept[6].parameter), (9, "δ"));
    assert_eq!(swept[6].points.last(), Some(&(1.0, 1.0)));
    assert_eq!(swept[0].points[0].1, 0.3);
    assert!(plots::sensitivities(&swept, "t").contains("<svg"));
}
