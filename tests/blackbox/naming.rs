//! Names of checkpoints: numbers, ids, labels and `@{n}`, as people type them.

use crate::support::Lab;

fn id_of(lab: &Lab, n: u64) -> String {
    lab.piton(&["show", &n.to_string(), "--json"]).json()["id"].as_str().unwrap().to_owned()
}

/// The number of the checkpoint that a selector names.
fn named(lab: &Lab, selector: &str) -> u64 {
    lab.piton(&["show", selector, "--json"]).json()["n"].as_u64().unwrap_or_else(|| panic!("{selector} names nothing"))
}

#[test]
fn an_id_of_digits_alone_is_found_as_list_shows_it() {
    let lab = Lab::new();
    // About one id in seven begins with four digits.
    let (n, id) = (0..400)
        .find_map(|round| {
            lab.write("a.txt", format!("{round}"));
            let n = lab.take(&format!("round {round}"));
            let id = id_of(&lab, n);
            id[..4].bytes().all(|byte| byte.is_ascii_digit()).then_some((n, id))
        })
        .expect("no id of 400 begins with four digits");
    let number: u64 = id[..4].parse().unwrap();
    if number > n {
        assert_eq!(named(&lab, &id[..4]), n, "{id}");
    }
    assert_eq!(named(&lab, &format!("id:{}", &id[..4])), n);
    assert_eq!(named(&lab, "1"), 1);
}

#[test]
fn labels_are_found_or_refused_when_they_are_made() {
    let lab = Lab::new();
    lab.write("a.txt", "one");
    let first = lab.take("cafe");
    assert_eq!(named(&lab, "cafe"), first);
    lab.write("a.txt", "two");
    let second = lab.take("cafe");
    assert_eq!(named(&lab, "cafe"), second, "of equal labels the newest");
    for bad in ["12", "#7", "@{3}", "id:abcd", "1234567", "run:codon:completed"] {
        let output = lab.piton(&["checkpoint", bad, "--json"]);
        assert_eq!((output.error().as_str(), output.code), ("bad-request", 2), "{bad}: {output:?}");
    }
    assert_eq!(named(&lab, "@{0}"), second, "a refused label takes nothing");
}

#[test]
fn a_label_that_retention_dropped_says_when_and_by_which_rule() {
    let lab = Lab::new();
    lab.set("retention: {per_workspace: 1}\n");
    let mut ids = Vec::new();
    for label in ["first try", "second try", "third try"] {
        lab.write("a.txt", label);
        ids.push(id_of(&lab, lab.take(label)));
    }
    for selector in ["first try", "1", "#1", &ids[0], &ids[0][..12]] {
        let output = lab.piton(&["show", selector]);
        let text = &output.stderr;
        assert!(
            output.code == 3 && text.contains("checkpoint 1 (`first try`) was dropped on "),
            "{selector}: {output:?}"
        );
        assert!(text.contains("by `retention.per_workspace`"), "{output:?}");
    }
    assert_eq!(named(&lab, "third try"), 3);
}

#[test]
fn the_newest_is_the_newest_that_somebody_took() {
    let lab = Lab::new();
    for content in ["one", "two"] {
        lab.write("a.txt", content);
        lab.take(content);
    }
    lab.write("a.txt", "three");
    lab.restore(1, &[]);
    assert_eq!(lab.read("a.txt"), "one");
    assert_eq!((named(&lab, "@{0}"), named(&lab, "@{1}")), (2, 1), "what the restore saved first is for undo");
    let shown = lab.piton(&["show", "--json"]).json();
    assert_eq!(shown["n"], 2);
}
