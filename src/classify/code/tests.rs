use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static RULES: LazyLock<RuleSet> = LazyLock::new(RuleSet::embedded);

fn found(language: CodeLanguage, code: &str) -> Vec<String> {
    let shown = |call: CodeCall| {
        let class = call.class.map_or("shell", Class::as_str);
        let dir = match call.dir {
            Directory::First => String::new(),
            Directory::Unknown => " in ?".to_owned(),
            Directory::Moved(dir) => format!(" in {dir}"),
        };
        format!("{class} {}{dir}", call.argument.as_deref().unwrap_or("?"))
    };
    find_calls(&RULES, language, code, &Origin { home: Some("/home/u"), dir: Some("."), within: false })
        .into_iter()
        .map(shown)
        .collect()
}

/// `code`, and what is found in it: each with its target; `?` for one that the code does not tell.
fn check(language: CodeLanguage, table: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (code, expected) in table {
        let given = found(language, code);
        if given != *expected {
            wrong.push(format!("{code}\n    wanted {expected:?}\n    given  {given:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn python() {
    check(
        CodeLanguage::Python,
        &[
            ("open('a','w').write('x')", &["file-overwrite a"]),
            ("open('a')", &[]),
            ("print(open('a', 'rb').read())", &[]),
            ("open('a', mode='a+').write('x')", &["file-write a"]),
            ("with open('in') as f, open(\"out\", 'w') as g:\n    g.write(f.read())", &["file-overwrite out"]),
            ("Path('a').write_text('x')", &["file-overwrite a"]),
            ("(Path('a') / 'b' / 'c.txt').write_text(x)", &["file-overwrite a/b/c.txt"]),
            ("import pathlib\np = pathlib.Path('a', 'b')\np.unlink(missing_ok=True)", &["file-delete a/b"]),
            ("Path(name).unlink()", &["file-delete ?"]),
            ("p.unlink()", &["file-delete ?"]),
            ("Path('a').rename('b')", &["file-move a", "file-move b"]),
            ("s = 'a'.replace('a', 'b')", &[]),
            ("import os; os.remove('a'); os.unlink(\"b\")", &["file-delete a", "file-delete b"]),
            ("from os import remove as rm, path\nrm('x')", &["file-delete x"]),
            ("import shutil as s\ns.rmtree('build', ignore_errors=True)", &["file-delete build"]),
            ("import shutil\nshutil.copy('/tmp/n.py','src/app.py')", &["file-overwrite src/app.py"]),
            ("shutil.copyfile(src='a', dst='b')", &["file-overwrite b"]),
            ("os.rename('a', 'b')", &["file-move a", "file-move b"]),
            ("from urllib.request import urlretrieve\nurlretrieve(u, 'z')", &["file-overwrite z"]),
            ("for f in ['a', 'b']:\n    os.remove(f)", &["file-delete a", "file-delete b"]),
            ("for f in 'a b'.split():\n    os.remove('d/' + f)", &["file-delete d/a", "file-delete d/b"]),
            ("[os.remove(f) for f in ('a', 'b')]", &["file-delete a", "file-delete b"]),
            ("for f in os.listdir('.'):\n    os.remove(f)", &["file-delete ?"]),
            ("p = 'a'\np = other()\nopen(p, 'w')", &["file-overwrite ?"]),
            ("p = 'a'\nif c:\n    p = 'b'\nos.remove(p)", &["file-delete a", "file-delete ?", "file-delete b"]),
            ("p = 'a'\nf(p)\np = 'b'\nos.remove(p)", &["file-delete b"]),
            ("os.remove('a' if c else 'b')", &["file-delete a", "file-delete b"]),
            ("os.remove(x or 'b')", &["file-delete ?", "file-delete b"]),
            ("for c in ['ls', 'rm x']: os.system(c)", &["shell ls", "shell rm x"]),
            ("list(map(os.remove, ['a']))", &["file-delete ? in ?"]),
            ("fn = os.remove\nfn('a')", &["file-delete a"]),
            ("new = 1\nprint(new)", &[]),
            ("cur.execute(sql)", &["exec-opaque ?"]),
            (
                "q = 'SELECT 1'\nif c:\n    q = 'DELETE FROM t'\ncur.execute(q)",
                &["database DELETE FROM t", "exec-opaque ?"],
            ),
            (
                "q = 'DELETE FROM t'\nq += ' WHERE a'\ncur.execute(q)",
                &["database DELETE FROM t WHERE a", "exec-opaque ?"],
            ),
            (
                "x = sqlite3.connect('a.db')\nx.execute('DELETE FROM t')",
                &["database DELETE FROM t", "file-overwrite a.db"],
            ),
            ("x = sqlite3.connect(':memory:')\nx.execute('DELETE FROM t')", &[]),
            ("p = r'a\\b'\nopen(p, 'w')", &["file-overwrite a\\b"]),
            ("open(f'{x}.txt', 'w')", &["file-overwrite ?"]),
            ("open(f'x.txt', 'w')", &["file-overwrite x.txt"]),
            ("open('a' 'b', 'w')", &["file-overwrite ab"]),
            ("open(os.path.join('a', 'b'), 'w')", &["file-overwrite a/b"]),
            ("open(os.path.expanduser('~/x'), 'w')", &["file-overwrite /home/u/x"]),
            ("open('~/x', 'w')", &["file-overwrite ~/x"]),
            ("(Path.home() / 'x').touch()", &["file-write /home/u/x"]),
            ("open(os.environ['HOME'] + '/x', 'w')", &["file-overwrite /home/u/x"]),
            ("os.chdir('sub')\nopen('a', 'w')", &["file-overwrite a in sub"]),
            ("os.chdir(d)\nopen('a', 'w')", &["file-overwrite a in ?"]),
            ("x = '''open('a','w')'''", &[]),
            ("# open('a','w')\nprint(\"os.remove('x')\")", &[]),
            ("os.system('rm -rf x')", &["shell rm -rf x"]),
            ("subprocess.run(['rm', '-rf', 'it''s'], cwd='d')", &["shell 'rm' '-rf' 'its' in d"]),
            ("subprocess.run(['rm', name])", &["shell 'rm' \"${unknown:?}\""]),
            ("c.execute('''\nDROP TABLE t\n''')", &["database \nDROP TABLE t\n"]),
            ("sql = 'DELETE FROM t'\nc.execute(sql)", &["database DELETE FROM t"]),
            ("c.execute('SELECT 1')", &[]),
            ("df.to_csv('a.csv', index=False)", &["file-overwrite a.csv"]),
            ("print(df.to_csv())", &[]),
            ("np.save('a.npy', x); torch.save(m, 'b.pt')", &["file-overwrite a.npy", "file-overwrite b.pt"]),
            ("import zipfile\nzipfile.ZipFile('a.zip').extractall('out')", &["file-overwrite out"]),
            ("Path('a').open('w').write('x')", &["file-overwrite a"]),
            ("__import__('os').remove('x')", &["file-delete x"]),
            ("def f(p):\n    os.remove(p)\np = 'a'\n", &["file-delete ?"]),
            ("json.dump(d, open('a.json', 'w'))", &["file-overwrite a.json"]),
            ("import json,sys; print(json.load(sys.stdin)['a'])", &[]),
        ],
    );
}

#[test]
fn javascript() {
    check(
        CodeLanguage::Javascript,
        &[
            ("require('fs').writeFileSync('a', 'x')", &["file-overwrite a"]),
            ("const fs = require('node:fs'); fs.rmSync('a', {recursive: true, force: true})", &["file-delete a"]),
            ("const {rmSync: r} = require('fs'); r(`a`)", &["file-delete a"]),
            ("const {rmSync} = require('fs'); ['a'].forEach(rmSync)", &["file-delete ? in ?"]),
            ("const fs = require('fs'); fs.rmSync.apply(fs, ['a'])", &["file-delete a"]),
            ("const fs = require('fs'); const d = fs.rmSync.bind(fs); d('a')", &["file-delete a"]),
            ("const r = require('util').promisify(require('child_process').exec); r('rm a')", &["shell rm a"]),
            ("f(x)\nconst p = 'b'\nrequire('fs').rmSync(p)", &["file-delete b"]),
            ("require('fs').rmSync(c ? 'a' : 'b')", &["file-delete a", "file-delete b"]),
            ("import fs from 'node:fs/promises'; await fs.rm('a')", &["file-delete a"]),
            ("import {unlink as u} from 'fs'; u('a', () => {})", &["file-delete a"]),
            ("fs.promises.writeFile(path.join('a', 'b'), 'x')", &["file-overwrite a/b"]),
            ("fs.writeFileSync(`${d}/x`, '')", &["file-overwrite ?"]),
            ("fs.writeFileSync('a', 'x', {flag: 'a'})", &["file-write a"]),
            ("fs.copyFileSync('a', 'b')", &["file-overwrite b"]),
            ("fs.renameSync('a', 'b')", &["file-move a", "file-move b"]),
            ("['a', 'b'].forEach(f => fs.unlinkSync(f))", &["file-delete a", "file-delete b"]),
            ("for (const f of ['a', 'b']) { fs.unlinkSync('d/' + f) }", &["file-delete d/a", "file-delete d/b"]),
            ("fs.readdirSync('.').forEach((f) => fs.unlinkSync(f))", &["file-delete ?"]),
            ("const p = os.homedir() + '/x'; fs.rmSync(p)", &["file-delete /home/u/x"]),
            ("process.chdir('d'); fs.rmSync('a')", &["file-delete a in d"]),
            ("// fs.rmSync('a')\n/* fs.rmSync('b') */ const r = /rmSync('c')/; r.exec('rmSync')", &[]),
            ("require('child_process').execSync('rm -rf x')", &["shell rm -rf x"]),
            (
                "const {execFileSync} = require('child_process'); execFileSync('rm', ['-rf', 'x'])",
                &["shell 'rm' '-rf' 'x'"],
            ),
            ("await $`rm -rf x`", &["shell rm -rf x"]),
            ("db.query('DROP TABLE t')", &["database DROP TABLE t"]),
            ("console.log(require('./package.json').version)", &[]),
            ("fs.openSync('a', 'r'); fs.openSync('b', 'w')", &["file-overwrite b"]),
        ],
    );
}

#[test]
fn ruby() {
    check(
        CodeLanguage::Ruby,
        &[
            ("File.write('a', 'x')", &["file-overwrite a"]),
            ("File.write 'a', 'x', mode: 'a'", &["file-write a"]),
            ("File.open('a', 'w') { |f| f.puts 'x' }", &["file-overwrite a"]),
            ("File.open('a').read", &[]),
            ("File.delete('a', \"b\")", &["file-delete a", "file-delete b"]),
            ("File.delete(\"#{x}\")", &["file-delete ?"]),
            ("require 'fileutils'; FileUtils.rm_rf %w[a b]", &["file-delete a", "file-delete b"]),
            ("FileUtils.rm_rf(['a', 'b'], secure: true)", &["file-delete a", "file-delete b"]),
            ("%w[a b].each { |f| File.delete(f) }", &["file-delete a", "file-delete b"]),
            ("['a'].each do |f|\n  File.delete File.join('d', f)\nend", &["file-delete d/a"]),
            ("FileUtils.cp 'a', 'b'", &["file-overwrite b"]),
            ("FileUtils.mv('a', 'b')", &["file-move a", "file-move b"]),
            ("Dir.glob('*.x').each { |f| File.delete(f) }", &["file-delete ?"]),
            ("File.chmod(0644, 'a')", &["file-perm a"]),
            ("Dir.chdir('d'); File.delete('a')", &["file-delete a in d"]),
            ("system('rm', '-rf', 'x')", &["shell 'rm' '-rf' 'x'"]),
            ("system \"rm -rf x\"", &["shell rm -rf x"]),
            ("`rm x`", &["shell rm x"]),
            ("Pathname.new('a').delete", &["file-delete a"]),
            ("h = {a: 1}; h.delete(:a)", &[]),
            ("puts 'File.delete(1)' # File.delete('x')", &[]),
            ("File.delete(File.expand_path('~/x'))", &["file-delete /home/u/x"]),
        ],
    );
}

#[test]
fn perl() {
    check(
        CodeLanguage::Perl,
        &[
            ("unlink 'a', 'b'", &["file-delete a", "file-delete b"]),
            ("unlink(\"a\") or die", &["file-delete a"]),
            ("unlink \"$x\"", &["file-delete ?"]),
            ("my @f = ('a'); unlink qw(a b)", &["file-delete a", "file-delete b"]),
            ("for my $f ('a', 'b') { unlink $f }", &["file-delete a", "file-delete b"]),
            ("open(my $fh, '>', 'f') or die; print $fh 'x'", &["file-overwrite f"]),
            ("open(my $fh, '<', 'f')", &[]),
            ("open(F, '>>f')", &["file-write f"]),
            ("open F, \">f\"", &["file-overwrite f"]),
            ("rename 'a', 'b'", &["file-move a", "file-move b"]),
            ("use File::Copy; copy('a', 'b')", &["file-overwrite b"]),
            ("use File::Path; rmtree('a')", &["file-delete a"]),
            ("chmod 0644, 'a'", &["file-perm a"]),
            ("system('rm', '-rf', 'x')", &["shell 'rm' '-rf' 'x'"]),
            ("system(\"rm x\")", &["shell rm x"]),
            ("unlink $ENV{HOME} . '/x'", &["file-delete /home/u/x"]),
            ("my $p = 'd' . '/x'; unlink $p", &["file-delete d/x"]),
            ("s/unlink 'a'/b/; print q(unlink 'b')", &[]),
        ],
    );
}

#[test]
fn php() {
    check(
        CodeLanguage::Php,
        &[
            ("file_put_contents('a', 'x');", &["file-overwrite a"]),
            ("file_put_contents('a', 'x', FILE_APPEND);", &["file-write a"]),
            ("unlink(\"a\");", &["file-delete a"]),
            ("unlink(\"$a/b\");", &["file-delete ?"]),
            ("$p = 'd' . '/x'; unlink($p);", &["file-delete d/x"]),
            ("foreach (['a', 'b'] as $f) unlink($f);", &["file-delete a", "file-delete b"]),
            ("fopen('a', 'r'); fopen('b', 'w');", &["file-overwrite b"]),
            ("copy('a', 'b');", &["file-overwrite b"]),
            ("rename('a', 'b');", &["file-move a", "file-move b"]),
            ("chdir('d'); unlink('a');", &["file-delete a in d"]),
            ("shell_exec('rm x');", &["shell rm x"]),
            ("$db->query('DROP TABLE t');", &["database DROP TABLE t"]),
            ("echo 'unlink(1)'; // unlink('a')", &[]),
            ("unlink(getenv('HOME') . '/x');", &["file-delete /home/u/x"]),
        ],
    );
}

/// Nothing is read twice: the bound is on calls and on memory, and a debug build comes to its end.
#[test]
fn hostile_code_ends() {
    let deep = |open: &str| open.repeat(50_000);
    for language in READ {
        for code in [
            deep("("),
            deep("["),
            deep("{"),
            deep("f("),
            deep("a."),
            deep("x = "),
            deep("for x in "),
            deep("[f(x) for x in "),
            deep("\""),
            deep("'''"),
            deep("`"),
            deep("<<A\n"),
            deep("q("),
            deep("%w["),
            deep("!"),
            deep("a => "),
            format!("x = '{}'\n{}", "y".repeat(1 << 20), "open(x, 'w')\n".repeat(2000)),
            format!("x = [{}]\n{}", "'y',".repeat(50_000), "open(x, 'w')\n".repeat(2000)),
        ] {
            assert!(found(language, &code).len() <= 2000);
        }
    }
}

proptest! {
    #[test]
    fn whatever_stands_there_is_read(code in "[a-z(){}\\[\\]'\"`#$@%<>/\\\\.,:;=|&!? \n\u{e9}]{0,120}") {
        for language in READ {
            found(language, &code);
        }
    }
}

/// `code`, and whether it may do what nobody sees.
#[test]
fn code_that_is_not_understood() {
    use CodeLanguage::{Javascript, Other, Perl, Php, Python, Ruby};
    let table: &[(CodeLanguage, &str, bool)] = &[
        (Python, "import app; app.wipe()", true),
        (Python, "import app", true),
        (Python, "from app.models import User\nUser.query.all()", true),
        (Python, "exec(open('x.py').read())", true),
        (Python, "eval(input())", true),
        (Python, "__import__(name).run()", true),
        (Python, "import importlib; importlib.import_module('app.tasks').run()", true),
        (Python, "import os; getattr(os, name)('a')", true),
        (Python, "from huggingface_hub import snapshot_download\nsnapshot_download('a/b', local_dir='m')", true),
        (Python, "import runpy; runpy.run_path('x.py')", true),
        (Python, "import os, sys, json as j\nprint(j.dumps(sys.argv))", false),
        (Python, "import fastapi; print(fastapi.__version__)", false),
        (Python, "from fastapi import __version__ as v; print(v)", false),
        (Python, "import app; print(dir(app), app.__file__)", false),
        (Python, "import app; print(app.__version__()); app.x", true),
        (Python, "import numpy as np, xml.etree.ElementTree as ET\nprint(np.zeros(3).sum())", false),
        (Python, "print(eval('1 + 1'))", false),
        (Python, "print('import app')  # import app", false),
        (Javascript, "require('./scripts/reset')()", true),
        (Javascript, "import('./x.mjs').then(m => m.run())", true),
        (Javascript, "import { wipe } from '../lib/db.js'\nwipe()", true),
        (Javascript, "require(process.argv[1])", true),
        (Javascript, "eval(code)", true),
        (Javascript, "require('left-pad-x').run()", true),
        (Javascript, "console.log(require('./package.json').version)", false),
        (Javascript, "console.log(require('typescript/package.json').version)", false),
        (Javascript, "const fs = require('node:fs/promises'), {join} = require('path')", false),
        (Javascript, "import fs, {readFileSync} from 'node:fs'", false),
        (Ruby, "require './lib/app'; App.reset", true),
        (Ruby, "require_relative 'app'", true),
        (Ruby, "load 'x.rb'", true),
        (Ruby, "eval(File.read('x'))", true),
        (Ruby, "require 'json'; require \"net/http\"; puts JSON.parse('1')", false),
        (Perl, "use My::App; My::App->reset", true),
        (Perl, "do './x.pl'", true),
        (Perl, "require 'x.pl'", true),
        (Perl, "eval $code", true),
        (Perl, "use strict; use warnings; use 5.010; use List::Util qw(sum); print sum(1, 2)", false),
        (Perl, "eval { die 1 }; print $@", false),
        (Php, "require 'vendor/autoload.php'; App::wipe();", true),
        (Php, "eval($code);", true),
        (Php, "echo json_encode([1]);", false),
        (Other, "import Foundation", false),
    ];
    let is_wrong = |(language, code, is_opaque): &&(CodeLanguage, &str, bool)| {
        found(*language, code).iter().any(|call| call.starts_with("exec-opaque")) != *is_opaque
    };
    let wrong: Vec<_> = table.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn code_within_code_is_read() {
    check(
        CodeLanguage::Python,
        &[
            ("exec(\"import os\\nos.remove('a')\")", &["file-delete a"]),
            ("import os; getattr(os, 'remove')('a')", &["file-delete a"]),
            (
                "import subprocess, sys; subprocess.run([sys.executable, '-m', 'pip', 'list'])",
                &["shell 'python3' '-m' 'pip' 'list'"],
            ),
            ("import subprocess; subprocess.run([tool, 'x'])", &["shell ?"]),
            ("import os; os.system('rm -rf ' + d)", &["shell rm -rf ${unknown:?}"]),
            ("import os; os.system(f'rm -rf {d}/x')", &["shell rm -rf ${unknown:?}/x"]),
            ("import os; os.system(d + ' x')", &["shell ?"]),
            ("cur.execute(f'DROP TABLE {name}')", &["database DROP TABLE x"]),
            ("cur.execute(f'SELECT {column} FROM t')", &[]),
            ("open(f'out/{name}.txt', 'w')", &["file-overwrite ?"]),
            ("from db import metadata\nmetadata.drop_all(engine)", &["database ?", "exec-opaque ?"]),
        ],
    );
}
