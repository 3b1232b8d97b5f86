//! The fields that the pages name are those of the types: an example of each type, with every field filled, against the
//! tables of `docs/PROTOCOL.md`.
//!
//! An example names all fields of its type, so that a new field does not compile until it is here, and does not pass until
//! it is on the page.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::Path;

use piton::error::Code;
use piton::model::checkpoint::CheckpointKind;
use piton::model::cost::Cost;
use piton::model::door::Door;
use piton::model::effect::{Certainty, Class, Confidence, Effect, Needs, Scope, Severity};
use piton::model::line_counts::LineCounts;
use piton::model::number::Number;
use piton::model::policy::Guard;
use piton::model::turn::Attribution;
use piton::protocol::{
    ActionItem, AdoptDocument, After, AfterReply, AutosavedNotice, BaselineStatus, Before, BeforeReply, BranchItem,
    BranchOrigin, BranchType, ChangedLists, ChangedSettingDocument, CheckedDocument, CheckpointBlock, CheckpointFacts,
    CheckpointStatus, CheckpointType, Chosen, ChosenItem, ChosenReply, Classify, ClassifyDocument, ClassifyReply,
    ClearDocument, ClearItem, ClientItem, ClientsDocument, CodonEnd, CodonReply, CodonStart, CodonStartReply,
    CollisionItem, Create, CreateReply, DaemonDocument, DegradedNotice, Diff, DiffReply, DoctorDocument, DoctorRow,
    DoorItem, EmptyReply, ErrorBody, ExplainDocument, ExportDocument, FailedNotice, FetchDocument, FindDocument,
    ForgetDocument, ForgetItem, FoundDocument, FoundItem, GitChangedQuery, GitChangedReply, GitOperationItem,
    GitOperationsDocument, GitUndoDocument, Greeting, GreetingType, Hello, HelloReply, HoldAnswer, InitDocument,
    InstallDocument, InstallItem, InstallOutcome, Interrupted, InterruptedNotice, KeptItem, LeftChange, LeftChanges,
    LimitsBlock, List, ListItem, ListQuery, ListReply, LowDiskNotice, MendBlock, MoveDocument, NoStep, NotHeld,
    OffDocument, OnDocument, OpenReply, OperationKind, OriginBlock, OtherBlock, OtherDone, OtherPreview, PastEffect,
    PathItem, PlanLists, PresenceWord, PreviewReply, ProofBlock, ProtectionBlock, ProtectionState, PruneDocument,
    PruneItem, PushDocument, ReasonItem, RefFinding, RefMoveItem, RefsDocument, RefusedRef, ReloadReply, RemoteItem,
    RemoteListDocument, RepositoryBlock, RestoreReply, Rollback, RollbackCompleted, RollbackProgress, RollbackStarted,
    RolledBackNotice, RowState, RunEnd, RunEndReply, RunFork, RunItem, RunLast, RunListReply, RunReply, RunStart,
    RunState, RunStatus, ScopeWord, SettingFilesDocument, SettingItem, SettingsDocument, SettledNotice, ShareCounts,
    ShellBefore, Show, ShowDirectoryDocument, ShowDocument, ShowFileDocument, ShowReply, ShownCheckpoint, SilentItem,
    SkippedSort, StatBlock, StatusDocument, StatusFacts, StatusLast, StatusReply, Step, StepBlock, StepFault,
    StopDocument, StoreCapNotice, StoreDocument, StoreListDocument, StoredWorkspace, StreamEnded, TargetBlock, To,
    ToolBefore, TrackedBlock, TrustDocument, Turn, TurnBlock, TurnDiff, TurnDiffReply, TurnEndReply, TurnItem,
    TurnListReply, TurnQuery, TurnReply, UnwatchedBlock, UnwatchedItem, VerbError, VersionItem, WarningBlock,
    WatcherWord, WatchingBlock, WatchingQuery, WithheldItem, Word, WorkMaker, WorkspaceBlock,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Fields by the name of their message, document or part.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Names, and one example.
type Example = (&'static str, Value);

fn example(name: &'static str, value: impl Serialize) -> Example {
    (name, serde_json::to_value(value).unwrap())
}

fn s() -> String {
    "x".to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "an example has every optional field")]
fn o() -> Option<String> {
    Some(s())
}

fn words() -> Vec<String> {
    vec![s()]
}

fn kind() -> Word<CheckpointKind> {
    CheckpointKind::Auto.into()
}

fn path_item() -> PathItem {
    PathItem { path: s(), path_b64: o(), why: o(), dir: true, lines: Some(LineCounts { plus: 1, minus: 1 }) }
}

fn list() -> List {
    List { total: 1, directories: 1, items: vec![path_item()] }
}

fn stat() -> StatBlock {
    StatBlock { files: 1, plus: 1, minus: 1, cut: true }
}

fn collision() -> CollisionItem {
    CollisionItem { owner: WorkMaker::Run.into(), run: o(), client: o(), turn: o(), operation: o(), paths: list() }
}

fn not_held() -> NotHeld {
    NotHeld { item: path_item(), bytes: Some(1), at_least: true }
}

fn block() -> CheckpointBlock {
    CheckpointBlock {
        id: o(),
        n: Some(Number::of(1)),
        kind: Some(kind()),
        status: CheckpointStatus::Taken,
        flags: words(),
        pending: o(),
        reason: o(),
        files: Some(1),
        bytes: Some(1),
        changed: Some(1),
        skipped: list(),
        ms: Some(1.0),
    }
}

fn warning() -> WarningBlock {
    WarningBlock {
        code: s(),
        class: Some(Class::Database.into()),
        message: s(),
        severity: Severity::High.into(),
        past: Some(PastEffect { action: o(), time: s() }),
    }
}

fn effect() -> Effect {
    Effect {
        class: Class::FileDelete,
        verb: s(),
        target: o(),
        scope: Scope::Workspace,
        certainty: Certainty::Proven,
        reversible: true,
        severity: Severity::Low,
        rule: s(),
        span: (0, 1),
    }
}

fn interrupted() -> Interrupted {
    Interrupted { operation: s(), target: s(), pre_restore: s(), next: s() }
}

fn workspace() -> WorkspaceBlock {
    WorkspaceBlock { id: s(), path: s(), scope: ScopeWord::Tree, since: o() }
}

fn origin() -> OriginBlock {
    OriginBlock { run: s(), checkpoint: s(), n: Number::of(1) }
}

fn classified() -> ClassifyReply {
    ClassifyReply {
        needs: Needs::Both.into(),
        confidence: Confidence::Exact.into(),
        writes_unnamed: true,
        effects: vec![effect()],
        warnings: vec![warning()],
    }
}

fn left() -> LeftChanges {
    LeftChanges { total: 1, items: vec![LeftChange { path: s(), why: s(), command: s() }] }
}

fn target() -> TargetBlock {
    TargetBlock {
        id: s(),
        n: Number::of(1),
        kind: kind(),
        time: s(),
        reason: s(),
        run: s(),
        codon_id: o(),
        codon_name: o(),
    }
}

fn shares() -> ShareCounts {
    ShareCounts { sure: 1, likely: 1, touched: 1, shared: 1, unknown: 1, missed: 1 }
}

fn turn_block() -> TurnBlock {
    TurnBlock { turn: s(), prompt: o(), run: s(), client: o(), shares: shares(), open: true }
}

fn action_item() -> ActionItem {
    ActionItem {
        command: s(),
        effects: vec![Class::Database.into()],
        opaque: true,
        lost: Some(1),
        status: CheckpointStatus::Held,
        n: Some(Number::of(1)),
        run: s(),
        turn: o(),
        action: o(),
        time: s(),
        reason: o(),
    }
}

fn turn_item() -> TurnItem {
    TurnItem {
        operation: s(),
        turn: s(),
        prompt: o(),
        run: s(),
        client: o(),
        began: s(),
        ended: s(),
        open: true,
        interrupted: true,
        undone: true,
        stayed: 1,
        paths: 1,
        shares: shares(),
        others: words(),
        actions: vec![action_item()],
    }
}

fn turn_diff() -> TurnDiffReply {
    let (files, directories) = (list(), list());
    TurnDiffReply { turn: turn_item(), stat: stat(), files, directories, patch: s(), cut: true }
}

fn error() -> ErrorBody {
    ErrorBody {
        code: Code::Busy.into(),
        message: s(),
        line: NonZeroU64::new(1),
        field: Some(s()),
        candidates: words(),
        preview: Some(Box::new(preview())),
        retry: true,
    }
}

fn over() -> StepBlock {
    StepBlock { operation: s(), kind: OperationKind::Restore.into(), time: s(), run: o(), turn: Some(turn_block()) }
}

fn plan() -> PlanLists {
    PlanLists { digest: s(), create: list(), replace: list(), delete: list(), keep: list(), conflict: list() }
}

fn git_operation() -> GitOperationItem {
    GitOperationItem { op: s(), time: s(), run: s(), turn: o(), command: s(), repository: s(), ended: o(), undone: o() }
}

fn preview() -> PreviewReply {
    PreviewReply { others: vec![other_preview()], ..plain_preview() }
}

fn step_fault() -> StepFault {
    StepFault { code: Code::Busy.into(), message: s() }
}

fn other_preview() -> OtherPreview {
    OtherPreview { workspace: s(), preview: Some(Box::new(plain_preview())), error: Some(step_fault()) }
}

fn other_done() -> OtherDone {
    OtherDone {
        workspace: s(),
        done: Some(Box::new(RestoreReply { others: Vec::new(), ..plain_restored() })),
        error: Some(step_fault()),
    }
}

fn plain_preview() -> PreviewReply {
    PreviewReply {
        target: target(),
        plan: plan(),
        stat: stat(),
        outside_edits: list(),
        warnings: vec![warning()],
        unheld: list(),
        left: left(),
        over: Some(over()),
        others: Vec::new(),
    }
}

fn changed() -> ChangedLists {
    ChangedLists {
        created: list(),
        replaced: list(),
        deleted: list(),
        kept: list(),
        failed: list(),
        not_agreed: list(),
    }
}

fn restored() -> RestoreReply {
    RestoreReply { others: vec![other_done()], ..plain_restored() }
}

fn plain_restored() -> RestoreReply {
    RestoreReply {
        operation: o(),
        from: o(),
        to: o(),
        pre_restore: o(),
        detached: true,
        next_branch: o(),
        run: o(),
        target: Some(target()),
        left: left(),
        over: Some(over()),
        done: changed(),
        warnings: vec![warning()],
        state: words(),
        rewind_turn: o(),
        rewind_how: o(),
        message: o(),
        others: Vec::new(),
    }
}

fn found_item() -> FoundItem {
    FoundItem { path: path_item(), n: Number::of(1), time: s(), present: true }
}

fn facts() -> CheckpointFacts {
    CheckpointFacts {
        n: Number::of(1),
        id: s(),
        kind: kind(),
        run: s(),
        client: o(),
        turn: o(),
        codon_id: o(),
        codon_name: o(),
        duration_ms: Some(1),
        time: s(),
        reason: s(),
        files: 1,
        directories: 1,
        bytes: 1,
        flags: words(),
        pinned: true,
        effects: vec![Class::Database.into()],
        skipped: list(),
    }
}

fn diff() -> DiffReply {
    DiffReply {
        from: target(),
        to: Some(target()),
        stat: stat(),
        files: list(),
        directories: list(),
        patch: s(),
        cut: true,
    }
}

fn repository() -> RepositoryBlock {
    RepositoryBlock { branch: Some(s()), commit: Some(s()), refs: 1, stashes: 1, in_progress: Some(s()) }
}

fn shown() -> ShownCheckpoint {
    ShownCheckpoint {
        facts: facts(),
        prompt: o(),
        actions: vec![action_item()],
        parents: words(),
        tree: s(),
        faults: words(),
        repository: Some(repository()),
    }
}

fn chosen_item() -> ChosenItem {
    ChosenItem { n: Number::of(1), id: s(), kind: kind(), time: s(), reason: s(), changed: true }
}

fn chosen() -> ChosenReply {
    ChosenReply { checkpoints: vec![chosen_item()] }
}

fn item() -> ListItem {
    ListItem {
        n: Number::of(1),
        id: s(),
        kind: kind(),
        run: s(),
        client: o(),
        turn: o(),
        prompt: o(),
        codon_id: o(),
        codon_name: o(),
        time: s(),
        reason: s(),
        stat: stat(),
        pending: false,
        flags: words(),
        not_held: vec![not_held()],
        external: vec![Class::Database.into()],
        pinned: true,
        steps: 2,
        actions: vec![action_item()],
    }
}

fn branch() -> BranchItem {
    BranchItem { branch: s(), from: Some(branch_origin()), checkpoints: 1, tip: o() }
}

fn branch_origin() -> BranchOrigin {
    BranchOrigin { origin: origin(), r#type: BranchType::Fork }
}

fn run_last() -> RunLast {
    RunLast { n: Number::of(1), id: s(), kind: kind(), codon_id: o(), codon_name: o(), time: s() }
}

fn run_item() -> RunItem {
    RunItem {
        run: s(),
        named: o(),
        client: o(),
        parent: o(),
        goal: o(),
        status: RunState::Open,
        started: o(),
        ended: o(),
        from: Some(origin()),
        codon: o(),
        tracked_files: Some(words()),
        checkpoints: 1,
        branches: vec![branch()],
        last: Some(run_last()),
    }
}

fn status_last() -> StatusLast {
    StatusLast { id: s(), n: Number::of(1), kind: kind(), time: s(), reason: s(), flags: words(), skipped: 1 }
}

fn status_facts() -> StatusFacts {
    StatusFacts {
        piton: s(),
        workspace: workspace(),
        store: s(),
        second_copy: false,
        guard: Guard::Turn.into(),
        protection: ProtectionBlock {
            state: ProtectionState::Protected,
            doors: vec![DoorItem { door: Door::Hook.into(), client: o(), last: s(), guards: true }],
            waiting: words(),
            reasons: vec![ReasonItem { client: o(), text: s(), mend: o() }],
            silent: vec![SilentItem { client: s(), since: s(), text: s(), mend: s() }],
        },
        guard_off: o(),
        watcher: WatcherWord::Warm,
        degraded: o(),
        checkpoints: 1,
        cost: Some(cost()),
        last: Some(status_last()),
        interrupted: vec![interrupted()],
        broken: words(),
        cap: o(),
        warnings: words(),
        mishaps: words(),
        unguarded: vec![action_item()],
    }
}

fn cost() -> Cost {
    Cost {
        list_us: 1,
        sync_us: 1,
        stat_us: 1,
        hash_us: 1,
        trees_us: 1,
        write_us: 1,
        total_us: 1,
        dirty: Some(1),
        hashed: 1,
        hashed_bytes: 1,
        objects: 1,
    }
}

fn unwatched() -> UnwatchedBlock {
    UnwatchedBlock { count: 1, items: vec![UnwatchedItem { path: s(), reason: s() }] }
}

fn watching() -> WatchingBlock {
    WatchingBlock {
        directories: 1,
        unwatched: unwatched(),
        refused: o(),
        events: 1,
        overflows: 1,
        audits: 1,
        divergences: 1,
        degraded: o(),
    }
}

fn settled() -> SettledNotice {
    SettledNotice {
        pending: s(),
        workspace: o(),
        checkpoint: block(),
        dirty: vec![path_item()],
        not_held: vec![not_held()],
    }
}

fn greeting() -> Greeting {
    Greeting { v: 1, r#type: GreetingType::Daemon, ok: true, build: s(), built_at: 1, pid: 1, since: s(), clients: 1 }
}

/// The fields of a target in all its forms, and of the wishes beside it.
fn rollback() -> Value {
    let all = [To::Checkpoint(s()), To::Codon(s(), CheckpointType::End), To::LastSuccess].map(|to| Rollback {
        to,
        run: o(),
        paths: Some(words()),
        keep_new: true,
        local: true,
        expect: o(),
        plan: o(),
        auto_restart: true,
        rewind: true,
    });
    let mut fields = Map::new();
    for form in all {
        let Value::Object(form) = json!(form) else { panic!("a struct is an object") };
        fields.extend(form.into_iter().filter(|(_, value)| !value.is_null()));
    }
    fields.into()
}

fn requests() -> Vec<Example> {
    let include = vec![Attribution::Touched];
    let step = Step {
        run: o(),
        turn: o(),
        paths: Some(words()),
        include,
        operation: o(),
        preview: true,
        plan: o(),
        rewind: true,
    };
    let turn = Turn { turn: s(), run: o(), prompt: o(), for_action: true };
    let after = After {
        action: o(),
        command: o(),
        tool: o(),
        input: json!({}),
        ok: Some(true),
        exit: Some(1),
        signal: Some(1),
        ended_ms: Some(1),
    };
    let end = CodonEnd { codon_id: o(), name: o(), reason: o(), run: o() };
    let hello = Hello {
        client: o(),
        client_version: o(),
        pid: Some(1),
        workspace: Some("/w".into()),
        cwd: Some("/w".into()),
        session: o(),
        parent: o(),
        shares_turn: Some(true),
        goal: o(),
        reaches_model: Some(true),
        waits: Some(true),
        door: Some(Door::Hook.into()),
        autosave: true,
    };
    let tool = ToolBefore {
        action: o(),
        tool: s(),
        input: json!({}),
        paths: words(),
        writes: Some(true),
        external: Some(true),
        cwd: Some("/w".into()),
        deadline_ms: Some(1),
        doubt: true,
    };
    let shell = ShellBefore {
        action: o(),
        command: s(),
        shell: o(),
        cwd: Some("/w".into()),
        deadline_ms: Some(1),
        doubt: true,
        background: true,
    };
    let kind = Some(CheckpointKind::Auto);
    let query = ListQuery { run: o(), kind, path: o(), limit: Some(1), before: Some(Before::Number(1)), steps: true };
    let nothing = || json!({});
    vec![
        example("hello", hello),
        example("run.start", RunStart { run: o(), parent: o(), goal: o(), client: o() }),
        example("run.end", RunEnd { status: Some(RunStatus::Completed) }),
        example("run.fork", RunFork { sha: s(), run: o(), parent: o(), goal: o() }),
        example("run.list", nothing()),
        example("turn.start", &turn),
        example("turn.end", &turn),
        example("tool.before", tool),
        example("shell.before", shell),
        example("tool.after", &after),
        example("shell.after", &after),
        example("classify", Classify { command: s(), cwd: Some("/w".into()) }),
        example("checkpoint.create", Create { label: o(), paths: Some(words()), pin: true }),
        example("checkpoint.list", query),
        example("checkpoint.show", Show { sha: s() }),
        example("checkpoint.diff", Diff { from: s(), to: o(), paths: Some(words()) }),
        example("checkpoint.pin", Chosen { shas: words() }),
        example("checkpoint.unpin", Chosen { shas: words() }),
        example("checkpoint.delete", Chosen { shas: words() }),
        example("codon.start", CodonStart { codon_id: s(), name: o(), tracked_files: Some(words()), run: o() }),
        example("codon.rigSetup", &end),
        example("codon.complete", &end),
        example("codon.fail", &end),
        example("codon.skip", &end),
        example("rollback.preview", rollback()),
        example("rollback.toCheckpoint", rollback()),
        example("rollback.toCodon", rollback()),
        example("rollback.toLastSuccess", rollback()),
        example("restore", rollback()),
        example("turn.list", TurnQuery { run: o(), limit: Some(1) }),
        example("turn.diff", TurnDiff { turn: o(), run: o(), paths: Some(words()) }),
        example("undo", &step),
        example("redo", &step),
        example("status", nothing()),
        example("watching", WatchingQuery { workspace: s() }),
        example("git.changed", GitChangedQuery { top: s(), token: s() }),
        example("ping", nothing()),
        example("config.reload", nothing()),
        example("shutdown", nothing()),
    ]
}

fn replies() -> Vec<Example> {
    let hello = HelloReply {
        piton: s(),
        workspace: workspace(),
        run: s(),
        guard: Guard::Turn.into(),
        baseline: BaselineStatus::Ready,
        watcher: WatcherWord::Warm,
        autosave: true,
        limits: LimitsBlock { line: 1, deadline_ms: 1 },
        interrupted: vec![interrupted()],
        faults: words(),
    };
    let before = BeforeReply {
        proceed: true,
        reason: o(),
        action: o(),
        turn: o(),
        needs: Needs::Both.into(),
        confidence: Confidence::Exact.into(),
        effects: vec![effect()],
        warnings: vec![warning()],
        checkpoint: block(),
        not_held: vec![not_held()],
        answer: Some(HoldAnswer::Deny.into()),
        collisions: vec![collision()],
        others: vec![OtherBlock { workspace: s(), checkpoint: block() }],
        notices: words(),
        silent: vec![SilentItem { client: s(), since: s(), text: s(), mend: s() }],
    };
    let status = StatusReply {
        facts: status_facts(),
        run: s(),
        turn: o(),
        baseline: BaselineStatus::Ready,
        watching: watching(),
        faults: words(),
    };
    let begun = RunReply { run: s(), branch: s(), from: Some(origin()) };
    let after = AfterReply { notices: words() };
    let codon = CodonReply { run: s(), codon_id: o(), checkpoint: block() };
    let unguarded = vec![action_item()];
    let listed = ListReply { current_branch: o(), total: 1, checkpoints: vec![item()], faults: words(), unguarded };
    vec![
        example("hello", hello),
        example("run.start", &begun),
        example("run.fork", &begun),
        example("run.end", RunEndReply { run: s(), checkpoint: Some(block()) }),
        example("run.list", RunListReply { total: 1, runs: vec![run_item()], faults: words() }),
        example("turn.start", TurnReply { turn: s(), notices: words(), checkpoint: Some(block()) }),
        example("turn.end", TurnEndReply { turn: s(), notices: words() }),
        example("tool.before", &before),
        example("shell.before", &before),
        example("tool.after", &after),
        example("shell.after", &after),
        example("classify", classified()),
        example("checkpoint.create", CreateReply { checkpoint: block() }),
        example("checkpoint.list", listed),
        example("checkpoint.show", ShowReply { checkpoint: shown(), paths: list() }),
        example("checkpoint.diff", diff()),
        example("checkpoint.pin", chosen()),
        example("checkpoint.unpin", chosen()),
        example("checkpoint.delete", chosen()),
        example("codon.start", CodonStartReply { run: s(), codon_id: s(), tracked_files: words() }),
        example("codon.rigSetup", &codon),
        example("codon.complete", &codon),
        example("codon.fail", &codon),
        example("codon.skip", &codon),
        example("rollback.preview", preview()),
        example("rollback.toCheckpoint", restored()),
        example("rollback.toCodon", restored()),
        example("rollback.toLastSuccess", restored()),
        example("restore", restored()),
        example("turn.list", TurnListReply { turns: vec![turn_item()], unguarded: vec![action_item()] }),
        example("turn.diff", turn_diff()),
        example("undo", restored()),
        example("redo", restored()),
        example("status", status),
        example("watching", OpenReply { open: true, watcher: WatcherWord::Warm, degraded: o() }),
        example("git.changed", GitChangedReply { token: o(), everything: o(), paths: words() }),
        example("ping", EmptyReply {}),
        example("config.reload", ReloadReply { warnings: words() }),
        example("shutdown", EmptyReply {}),
    ]
}

fn notices() -> Vec<Example> {
    let failed = FailedNotice { kind: Some(kind()), reason: o(), late: Some(settled()) };
    let started = RollbackStarted {
        run: s(),
        from_branch: s(),
        to: s(),
        codon_id: o(),
        codon_name: o(),
        checkpoint_type: kind(),
        paths: 1,
    };
    let completed = RollbackCompleted {
        run: s(),
        from_branch: s(),
        next_branch: s(),
        to: s(),
        codon_id: o(),
        codon_name: o(),
        checkpoint_type: kind(),
        operation: o(),
        auto_restart: true,
    };
    let skipped = BTreeMap::from([(SkippedSort::Foreign, 1)]);
    vec![
        example("checkpoint.settled", settled()),
        example("checkpoint.failed", failed),
        example("checkpoint.autosaved", AutosavedNotice { checkpoint: block() }),
        example(
            "rolled-back",
            RolledBackNotice { to: s(), files: list(), rewind_turn: o(), rewind_how: o(), text: s() },
        ),
        example("rollback.started", started),
        example("rollback.progress", RollbackProgress { current_step: 1, total_steps: 2, message: s() }),
        example("rollback.completed", completed),
        example("restore.interrupted", InterruptedNotice { operation: interrupted() }),
        example("store.low-disk", LowDiskNotice { reason: s() }),
        example("watcher.degraded", DegradedNotice { reason: s() }),
        example("store.cap", StoreCapNotice { reason: s(), total: 1, over: 1 }),
        example("config.reloaded", ReloadReply { warnings: words() }),
        example("stream.ended", StreamEnded { lines: 1, turns: 1, actions: 1, skipped }),
    ]
}

fn parts() -> Vec<Example> {
    vec![
        example("a list", list()),
        example("an item of a list", path_item()),
        example("`stat`", stat()),
        example("`left`", left()),
        example("an item of `left`", left().items.remove(0)),
        example("a block `checkpoint`", block()),
        example("`lines` of an item", LineCounts { plus: 1, minus: 1 }),
        example("an item of `not_held`", not_held()),
        example("an item of `collisions`", collision()),
        example("an item of `others`", OtherBlock { workspace: s(), checkpoint: block() }),
        example("an item of `effects`", effect()),
        example("an item of `warnings`", warning()),
        example("an item of `interrupted`", interrupted()),
        example("`workspace`", workspace()),
        example("`limits`", LimitsBlock { line: 1, deadline_ms: 1 }),
        example("an item of `checkpoints`", item()),
        example("a named checkpoint", chosen_item()),
        example("`checkpoint` of `checkpoint.show`", shown()),
        example("`repository` of `checkpoint.show`", repository()),
        example("an item of `runs`", run_item()),
        example("`from` of a run", origin()),
        example("`last` of a run", run_last()),
        example("an item of `branches`", branch()),
        example("`from` of a branch", branch_origin()),
        example("`target`", target()),
        example("`plan`", plan()),
        example("`over`", over()),
        example("`turn` of `over`", turn_block()),
        example("`shares`", shares()),
        example("`turn` of `turn.diff`, an item of `turns`", turn_item()),
        example("an item of `actions`", action_item()),
        example("an item of `others` of a preview", other_preview()),
        example("an item of `others` of a step", other_done()),
        example("`error` of such an item", step_fault()),
        example("`done`", changed()),
        example("`last` of `status`", status_last()),
        example("`cost`", cost()),
        example("`watching`", watching()),
        example("`unwatched`", unwatched()),
        example("an item of `unwatched`", UnwatchedItem { path: s(), reason: s() }),
        example("`error`", error()),
        example("a daemon's first line", greeting()),
    ]
}

fn documents() -> Vec<Example> {
    let setting = SettingItem { key: s(), value: json!(1), origin: s() };
    let remote = RemoteItem {
        workspace: s(),
        id: s(),
        n: Number::of(1),
        kind: kind(),
        run: s(),
        time: s(),
        reason: s(),
        flags: words(),
        pinned: true,
    };
    let version = VersionItem {
        id: o(),
        presence: PresenceWord::Held,
        why: o(),
        bytes: Some(1),
        checkpoints: vec![Number::of(1)],
    };
    let withheld = WithheldItem { what: s(), why: s() };
    let push = PushDocument {
        sent: 1,
        known: 1,
        refused: words(),
        withheld: vec![withheld.clone()],
        dry_run: true,
        unsent: 1,
        ok: true,
    };
    let pruned = PruneItem {
        workspace: s(),
        n: Number::of(1),
        id: s(),
        kind: kind(),
        time: s(),
        reason: s(),
        bytes: 1,
        rule: s(),
    };
    let prune = PruneDocument {
        dry_run: true,
        digest: s(),
        checkpoints: vec![pruned.clone()],
        dropped: 1,
        private_captures: 0,
        private_bytes: 0,
        stored: 1,
        over: 1,
        freed: 1,
        left: o(),
        faults: words(),
    };
    let stored = StoredWorkspace {
        id: s(),
        path: s(),
        since: s(),
        clients: words(),
        runs: 1,
        checkpoints: 1,
        fetched: 1,
        own: Some(1),
        shared: Some(1),
        touched: o(),
        guarded: true,
        standing: s(),
        reason: s(),
        moved_to: o(),
        was: o(),
        part_of: o(),
    };
    let store = StoreDocument {
        home: s(),
        stored: Some(1),
        shared: Some(1),
        counted: o(),
        cap: 1,
        over: 1,
        packs: 1,
        pack_bytes: 1,
        loose: 1,
        loose_bytes: 1,
        workspaces: vec![stored.clone()],
    };
    let cleared = ClearItem { path: s(), checkpoints: 1, own: Some(1), cleared: true };
    let adopt = AdoptDocument { from: s(), to: s(), change: s(), checkpoints: 1, beside: 1, done: true };
    let forgotten = ForgetItem { workspace: s(), n: Number::of(1), id: s(), by: o(), paths: words() };
    let proof = ProofBlock { objects: 1, files: 1, bytes: 1, left: words() };
    let forget = ForgetDocument {
        dry_run: true,
        digest: s(),
        checkpoints: vec![forgotten.clone()],
        versions: 1,
        bytes: 1,
        present: words(),
        forgotten: 1,
        freed: 1,
        proof: Some(proof.clone()),
        faults: words(),
    };
    let explained = ExplainDocument {
        key: s(),
        about: s(),
        accepts: s(),
        default: json!(1),
        value: json!(1),
        origin: s(),
        variable: o(),
        direction: s(),
    };
    let changed_setting = ChangedSettingDocument {
        path: s(),
        key: s(),
        value: json!(1),
        in_force: Some(json!(1)),
        changed: true,
        waits: true,
    };
    let refused = RefusedRef { name: s(), why: s() };
    let fetch = FetchDocument { new: words(), known: 1, refused: vec![refused.clone()], ok: true };
    let tracked = TrackedBlock { run: s(), patterns: words(), matched: list(), missed: list() };
    let installed = InstallItem {
        client: s(),
        done: InstallOutcome::Created,
        path: o(),
        code: Some(Code::Busy.into()),
        message: o(),
    };
    let client = ClientItem { client: s(), found: true, hooks: true };
    let mend = Some(MendBlock::Command(s()));
    let row = DoctorRow { check: s(), about: s(), state: RowState::Wrong, text: s(), mend };
    let doctor = DoctorDocument { well: true, build: s(), rows: vec![row.clone()] };
    let number = Some(Number::of(1));
    let set_up = InitDocument { files: vec![installed.clone()], doctor: doctor.clone(), n: number, back: o() };
    let finding = RefFinding { workspace: s(), kind: s(), what: s(), harm: true, repair: o() };
    let error = VerbError { code: Code::Busy.into(), message: s(), candidates: words() };
    let guard: Word<Guard> = Guard::Turn.into();
    vec![
        example("`error` of a verb that failed", error),
        example("`status`", StatusDocument { facts: status_facts(), settings: words() }),
        example("`show N`", ShowDocument { checkpoint: shown(), paths: list() }),
        example(
            "`show N:PATH`",
            ShowFileDocument { n: Number::of(1), of: path_item(), id: s(), stored_path: s(), bytes: 1 },
        ),
        example("`show N:DIR`", ShowDirectoryDocument { n: Number::of(1), of: path_item(), paths: list() }),
        example("`diff`", diff()),
        example("`find`", FindDocument { path: path_item(), versions: vec![version.clone()] }),
        example("`find` of a pattern", FoundDocument { pattern: s(), matches: vec![found_item()] }),
        example("an item of `matches`", found_item()),
        example("an item of `versions`", version),
        example("`restore --to`", ExportDocument { to: s(), created: list(), failed: list() }),
        example("`undo`, `redo` without a step", NoStep { operation: o(), message: s() }),
        example("`git-undo --list`", GitOperationsDocument { operations: vec![git_operation()] }),
        example("an item of `operations`", git_operation()),
        example(
            "`git-undo`",
            GitUndoDocument {
                operation: Some(git_operation()),
                checkpoint: Some(Number::of(1)),
                files: Some(preview()),
                by: o(),
                ..GitUndoDocument::default()
            },
        ),
        example("an item of its `refs`", RefMoveItem { name: s(), from: o(), to: o() }),
        example("an item of its `kept`, `younger`", KeptItem { what: s(), why: s() }),
        example("`list --remote`", RemoteListDocument { total: 1, checkpoints: vec![remote.clone()], faults: words() }),
        example("an item of its `checkpoints`", remote),
        example("`push`", push),
        example("an item of `withheld`", withheld),
        example("`prune`", prune),
        example("a checkpoint of `prune`", pruned),
        example("`store status`", store),
        example("`store list`", StoreListDocument { workspaces: vec![stored.clone()] }),
        example("a workspace of these", stored),
        example("`store clear`", ClearDocument { workspaces: vec![cleared.clone()], freed: 1, left: o() }),
        example("a workspace of `store clear`", cleared),
        example("`store move`", MoveDocument { from: s(), to: s(), bytes: 1, copy: true, moved: true }),
        example("`adopt`", adopt),
        example("`forget`", forget),
        example("a checkpoint of `forget`", forgotten),
        example("its `proof`", proof),
        example("`fetch`", fetch),
        example("an item of its `refused`", refused),
        example("`classify`", ClassifyDocument { command: s(), verdict: classified(), hold: o() }),
        example("`config show`", SettingsDocument { settings: vec![setting.clone()], warnings: words() }),
        example("an item of its `settings`", setting.clone()),
        example(
            "`config check`",
            CheckedDocument { sources: words(), warnings: words(), tracked: Some(tracked.clone()) },
        ),
        example("`tracked`", tracked),
        example("`config get`", setting),
        example("`config explain`", explained),
        example("`config path`", SettingFilesDocument { sources: words(), user: o(), workspace: s() }),
        example("`config set`", changed_setting),
        example("`config trust`", TrustDocument { trusted: vec![s()], keys: vec![s()] }),
        example("`on`", OnDocument { workspace: s(), guard: guard.clone(), guard_off: o() }),
        example("`off`", OffDocument { workspace: s(), guard, until: o() }),
        example("`daemon start`, `daemon status`", DaemonDocument { daemon: Some(greeting()) }),
        example("`daemon stop`", StopDocument { stopped: Some(1) }),
        example(
            "`install`, `uninstall`",
            InstallDocument { dry_run: true, files: vec![installed.clone()], store: o() },
        ),
        example("an item of its `files`", installed.clone()),
        example("`init` without a shell", set_up),
        example("`install` without a client", ClientsDocument { clients: vec![client.clone()] }),
        example("an item of `clients`", client),
        example("`doctor`", doctor),
        example("an item of `rows`", row),
        example("`doctor --refs`", RefsDocument { findings: vec![finding.clone()], repaired: words() }),
        example("an item of `findings`", finding),
    ]
}

/// The fields of examples. Every one must be filled.
fn of_types(examples: Vec<Example>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in examples {
        let Value::Object(object) = value else { panic!("{name} is no object") };
        for (field, value) in &object {
            assert!(!value.is_null(), "fill `{field}` in the example of {name}");
        }
        fields.insert(name.to_owned(), object.into_iter().map(|(field, _)| field).collect());
    }
    fields
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// The rows of the tables of a section, without their heads. An empty first cell stands for the one above.
fn rows(page: &str, section: &str) -> Vec<Vec<String>> {
    let text = page.split_once(&format!("\n{section}\n")).unwrap_or_else(|| panic!("no section {section}")).1;
    let text = text.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let is_head = lines.get(at + 1).is_some_and(|below| below.starts_with("|---"));
        if !line.starts_with("| ") || is_head {
            continue;
        }
        let line = line.replace("\\|", "\u{1}");
        let mut cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        if cells[0].is_empty() {
            cells[0] = rows.last().unwrap()[0].clone();
        }
        rows.push(cells);
    }
    rows
}

/// The names in backticks of a cell.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The fields that a column of a section's tables has, by the names in the first; `each` of which may stand for itself.
fn of_page(page: &str, section: &str, column: usize, each: bool) -> Fields {
    let mut fields = Fields::new();
    for cells in rows(page, section) {
        let keys = if each { names(&cells[0]) } else { BTreeSet::from([cells[0].clone()]) };
        assert!(!keys.is_empty(), "{section}: {cells:?}");
        for key in keys {
            fields.entry(key).or_default().extend(names(&cells[column]));
        }
    }
    fields
}

/// Says which rows of a page are not as the types have them.
fn compare(what: &str, types: &Fields, page: &Fields) {
    let mut wrong = Vec::new();
    for name in types.keys().chain(page.keys()).collect::<BTreeSet<_>>() {
        let none = BTreeSet::new();
        let (is, told) = (types.get(name).unwrap_or(&none), page.get(name).unwrap_or(&none));
        if is != told || types.contains_key(name) != page.contains_key(name) {
            let missing: Vec<&String> = is.difference(told).collect();
            let gone: Vec<&String> = told.difference(is).collect();
            wrong.push(format!("{name}: not on the page {missing:?}; not in the type {gone:?}"));
        }
    }
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn the_protocol_page_has_the_fields_of_the_types() {
    let page = page("PROTOCOL.md");
    compare("fields of requests", &of_types(requests()), &of_page(&page, "### Of requests", 1, true));
    compare("fields of replies", &of_types(replies()), &of_page(&page, "### Of requests", 2, true));
    compare("fields of notices", &of_types(notices()), &of_page(&page, "### Of notices", 1, true));
    compare("fields of parts", &of_types(parts()), &of_page(&page, "### Of their parts", 1, false));
}

/// The tables of all fields only name them: each is explained, or stands in an example, further up.
#[test]
fn each_field_of_the_protocol_is_explained() {
    let page = page("PROTOCOL.md");
    let explained = page.split_once("\n## All fields\n").expect("the section is there").0;
    let all: BTreeSet<String> = [requests(), replies(), notices(), parts()]
        .into_iter()
        .flat_map(|examples| of_types(examples).into_values().flatten())
        .collect();
    let is_told = |name: &&String| {
        ["`", "\"", "."].iter().any(|mark| explained.contains(&format!("{mark}{name}`")))
            || explained.contains(&format!("\"{name}\""))
            || explained.contains(&format!("`{name}:"))
    };
    let missing: Vec<&String> = all.iter().filter(|name| !is_told(name)).collect();
    assert!(missing.is_empty(), "docs/PROTOCOL.md does not explain {missing:?}");
}

/// The first column of every table of fields names only fields that there are.
#[test]
fn tables_of_the_protocol_name_no_field_that_is_gone() {
    let page = page("PROTOCOL.md");
    let all: BTreeSet<String> = [requests(), replies(), notices(), parts()]
        .into_iter()
        .flat_map(|examples| of_types(examples).into_values().flatten())
        .collect();
    let mut gone = Vec::new();
    let mut is_of_fields = false;
    for line in page.lines() {
        let first = line.trim_start_matches('|').split('|').next().unwrap_or_default();
        if !line.starts_with('|') {
            is_of_fields = false;
        } else if first.trim().starts_with("field") {
            is_of_fields = true;
        } else if is_of_fields {
            // `reaches_model: false` and `plan.digest` are about `reaches_model` and `digest`.
            let bare = |name: &String| name.split(':').next().unwrap_or_default().rsplit('.').next().map(str::to_owned);
            gone.extend(names(first).iter().filter_map(bare).filter(|name| !all.contains(name)));
        }
    }
    assert!(gone.is_empty(), "docs/PROTOCOL.md has tables of fields with {gone:?}");
}

#[test]
fn the_page_of_the_command_line_has_the_fields_of_the_documents() {
    let page = page("PROTOCOL.md");
    compare("fields of documents", &of_types(documents()), &of_page(&page, "### Documents of verbs", 1, false));
}

#[test]
fn a_field_that_only_one_side_has_is_found() {
    let fields = |names: &[&str]| -> Fields {
        BTreeMap::from([("a".to_owned(), names.iter().map(|name| (*name).to_owned()).collect())])
    };
    let differ = |types: &[&str], page: &[&str]| {
        let (types, page) = (fields(types), fields(page));
        std::panic::catch_unwind(|| compare("x", &types, &page)).is_err()
    };
    assert!(differ(&["b", "c"], &["b"]) && differ(&["b"], &["b", "c"]) && !differ(&["b"], &["b"]));
    let page =
        "\n## S\n\n| m | f | r |\n|---|---|---|\n| `a`, `b` | `c` | x |\n| | `d` | `e` |\n\n## T\n| `f` | `g` | |\n";
    let read = of_page(page, "## S", 1, true);
    assert_eq!(read["a"], names("`c` `d`"));
    assert_eq!((read.len(), &of_page(page, "## S", 2, true)["b"]), (2, &names("`e`")));
}
