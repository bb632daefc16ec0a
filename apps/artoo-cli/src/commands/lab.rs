//! `artoo ggs simulate` and `artoo ggs calibrate`: the controller measured and tuned on simulated tasks (design §12).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use artoo_bus::SystemClock;
use artoo_ggs::Params;
use artoo_ggs::lab::report::{csv, markdown, page, plots};
use artoo_ggs::lab::tune::rows::{TaskRow, mean_worth, read};
use artoo_ggs::lab::tune::sensitivity::sweeps;
use artoo_ggs::lab::tune::{Examples, Rules, Search};
use artoo_ggs::lab::{Contender, Family, Grid, Policy, Row, contenders};
use artoo_protocol::ports::Clock as _;
use serde_json::json;

use crate::args_lab::{CalibrateArgs, SimulateArgs};
use crate::failure::Failure;
use crate::output;

/// Families that are fitted when none is named; the others are what the result is judged on.
const FITTED: [Family; 6] = [
    Family::TransientFaults,
    Family::WrongApproach,
    Family::UnequalApproaches,
    Family::NoisyValidators,
    Family::SlowWork,
    Family::Infeasible,
];
/// Steps in which a parameter is moved through its range.
const STEPS: u32 = 20;
/// With fewer real tasks a fit would be chance.
const ROWS_MIN: usize = 30;

/// Compares the policies.
///
/// # Errors
/// [`Failure`] (exit 2) for an unknown family, a skill out of range or a file that cannot be read or written.
pub fn simulate(args: &SimulateArgs) -> Result<(), Failure> {
    let mut compared = contenders();
    for file in &args.params {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let at = compared.len().saturating_sub(1);
        compared.insert(at, Contender::new(&format!("GGS, {name}"), Policy::Ggs(params(file)?)));
    }
    let grid = Grid {
        seed: args.seed,
        tasks: args.tasks,
        families: families(&args.families, &Family::ALL)?,
        skills: skills(&args.skills)?,
        contenders: compared,
    };
    let began = SystemClock.now();
    let rows = grid.run(tenths(grid.runs()));
    let took = SystemClock.now().since(began);
    output::note(&format!("{} tasks in {took}", grid.runs()));
    if let Some(folder) = &args.out {
        let how = format!(
            "artoo ggs simulate --seed {} --tasks {} --skills {}{}",
            args.seed,
            args.tasks,
            args.skills
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(","),
            if args.families.is_empty() {
                String::new()
            } else {
                format!(" --families {}", args.families.join(","))
            }
        );
        write_all(folder, &rows, &how)?;
    }
    if args.json {
        output::pretty_json(&rows);
    } else {
        output::result(markdown(&rows).trim_end());
    }
    Ok(())
}

/// Looks for better parameters and says what they are worth on tasks that they were not fitted to.
///
/// # Errors
/// [`Failure`] (exit 2) for bad options and files, (exit 1) where there are too few rows.
pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    let start = args.params.as_deref().map_or_else(|| Ok(Params::default()), params)?;
    let search = Search {
        seed: args.seed,
        candidates: args.candidates,
        rules: if args.any_rule { Rules::Any } else { Rules::Specified },
        start,
    };
    if let Some(file) = &args.rows {
        let rows = telling_rows(file)?;
        // The last third in time is kept for judging.
        let (fitted, unseen) = rows.split_at(rows.len() * 2 / 3);
        return propose(
            args,
            &search,
            &format!("{} real tasks", fitted.len()),
            &format!("{} later ones", unseen.len()),
            |params| mean_worth(fitted, params),
            |params| mean_worth(unseen, params),
        );
    }
    let chosen = families(&args.families, &FITTED)?;
    let others: Vec<Family> = Family::ALL
        .into_iter()
        .filter(|family| *family != Family::Mix && !chosen.contains(family))
        .collect();
    let names = |families: &[Family]| families.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
    let (fitted_names, unseen_names) = (names(&chosen), names(&others));
    let examples = |seed, families| -> Result<Examples, Failure> {
        Ok(Examples {
            seed,
            families,
            skills: skills(&args.skills)?,
            tasks: args.tasks,
        })
    };
    let fitted = examples(args.seed, chosen)?;
    let unseen = examples(args.seed.wrapping_add(1), others)?;
    propose(
        args,
        &search,
        &fitted_names,
        &unseen_names,
        |params| fitted.worth(params),
        |params| unseen.worth(params),
    )
}

fn propose(
    args: &CalibrateArgs,
    search: &Search,
    fitted_names: &str,
    unseen_names: &str,
    fitted: impl Fn(&Params) -> f64,
    unseen: impl Fn(&Params) -> f64,
) -> Result<(), Failure> {
    let every = (args.candidates / 10).max(1);
    let (found, worth) = search.run(&fitted, |tried, best| {
        if tried % every == 0 {
            output::note(&format!("{tried} of {} tried, best {best:.4}", args.candidates));
        }
    });
    let (before, after) = (unseen(&search.start), unseen(&found));
    let file = serde_json::to_string_pretty(&found).map_err(|e| Failure::failed(e.to_string()))?;
    if let Some(path) = &args.out {
        output::file(path, &format!("{file}\n"))?;
    }
    if let Some(path) = &args.sensitivity {
        let title = format!("mean worth on {unseen_names}, one parameter moved at a time");
        output::file(path, &plots::sensitivities(&sweeps(&found, STEPS, &unseen), &title))?;
    }
    let start_worth = fitted(&search.start);
    if args.json {
        output::pretty_json(&json!({
            "params": found,
            "fitted": {"on": fitted_names, "before": start_worth, "after": worth},
            "unseen": {"on": unseen_names, "before": before, "after": after},
        }));
    } else {
        output::result(&file);
        output::note(&format!(
            "fitted on {fitted_names}: mean worth {start_worth:.4} before, {worth:.4} after"
        ));
        output::note(&format!(
            "judged on {unseen_names}: {before:.4} before, {after:.4} after"
        ));
        if after <= before {
            output::note("on tasks that it was not fitted to, this is no better than where the search started");
        }
    }
    Ok(())
}

fn telling_rows(file: &Path) -> Result<Vec<TaskRow>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))?;
    let (rows, bad) = read(&text);
    for line in &bad {
        output::note(&format!("{}, line {line}: not a row, left out", file.display()));
    }
    if rows.len() < ROWS_MIN {
        return Err(Failure::failed(format!(
            "{} holds {} tasks that say something about the controller; with fewer than {ROWS_MIN} a fit would be chance",
            file.display(),
            rows.len()
        )));
    }
    Ok(rows)
}

fn write_all(folder: &Path, rows: &[Row], how: &str) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))?;
    output::file(&folder.join("results.csv"), &csv(rows))?;
    output::file(&folder.join("results.md"), &markdown(rows))?;
    output::file(&folder.join("index.html"), &page(rows, how))?;
    let mut families: Vec<&str> = rows.iter().map(|row| row.family).collect();
    families.dedup();
    for family in &families {
        output::file(&folder.join(format!("{family}.svg")), &plots::outcomes(rows, family))?;
    }
    let mut skills: Vec<f64> = Vec::new();
    for row in rows {
        if !skills.iter().any(|skill| (skill - row.skill).abs() < 1e-9) {
            skills.push(row.skill);
        }
    }
    for skill in skills {
        output::file(
            &folder.join(format!("regret-{skill}.svg")),
            &plots::regrets(rows, skill),
        )?;
        for family in families.iter().filter(|family| **family == Family::Mix.name()) {
            output::file(
                &folder.join(format!("trade-{skill}.svg")),
                &plots::trade(rows, family, skill),
            )?;
        }
    }
    Ok(())
}

fn params(file: &Path) -> Result<Params, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))?;
    serde_json::from_str(&text)
        .map_err(|e| Failure::usage(format!("{} holds no parameters of the controller: {e}", file.display())))
}

fn families(names: &[String], otherwise: &[Family]) -> Result<Vec<Family>, Failure> {
    if names.is_empty() {
        return Ok(otherwise.to_vec());
    }
    let known = || Family::ALL.map(Family::name).join(", ");
    names
        .iter()
        .map(|name| {
            Family::named(name).ok_or_else(|| {
                Failure::usage(format!("there is no family `{name}`")).hint(format!("known are {}", known()))
            })
        })
        .collect()
}

fn skills(skills: &[f64]) -> Result<Vec<f64>, Failure> {
    match skills.iter().find(|skill| !(0.0..=1.0).contains(*skill)) {
        Some(skill) => Err(Failure::usage(format!(
            "{skill} is no skill: skills are numbers from 0 to 1"
        ))),
        None => Ok(skills.to_vec()),
    }
}

/// Tells every tenth of the way.
fn tenths(whole: u64) -> impl Fn(u64) + Sync {
    let told = AtomicU64::new(0);
    move |done| {
        let tenth = (done * 10).checked_div(whole).unwrap_or(10);
        if told.fetch_max(tenth, Ordering::Relaxed) < tenth {
            output::note(&format!("{} % of {whole} tasks", tenth * 10));
        }
    }
}
