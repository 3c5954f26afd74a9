/** Goal: real shells complete what the tables of the programs have, and expand nothing in them. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { completionScript, SHELLS, type Shell } from './completion.ts'
import type { CompletedOption, CompletedProgram } from './programs.ts'

const HANG_MILLIS = 600_000
/** Text that each shell would expand, or end a quotation with. */
const HOSTILE = `$(touch ran) \`touch ran\` "$HOME" 'x' \\ ; touch ran # [a]:b`

function flag(name: string): CompletedOption {
  return { name, summary: `Summary of ${name}`, value: null, repeats: false }
}

const PROGRAM: CompletedProgram = {
  name: 'tool-x',
  commands: [
    {
      name: 'keys issue',
      summary: HOSTILE,
      options: [
        { ...flag('--kind'), value: { kind: 'words', words: ['public', 'private', 'data:read'] } },
        { ...flag('--scopes'), value: { kind: 'list', words: ['query', 'mutation'] } },
        { ...flag('--out'), summary: HOSTILE, value: { kind: 'file' } },
        { ...flag('--root'), value: { kind: 'directory' } },
        { ...flag('--name'), value: { kind: 'text' } },
        { ...flag('--tag'), value: { kind: 'text' }, repeats: true },
        flag('--force'),
      ],
      positionals: [{ kind: 'file' }, { kind: 'words', words: ['data:read', 'data:write'] }],
    },
    { name: 'keys list', summary: 'List', options: [flag('--all')], positionals: [] },
    { name: 'keys', summary: 'Keys', options: [flag('--top')], positionals: [] },
    {
      name: 'strange',
      summary: 'Words that need quotes',
      options: [],
      positionals: [{ kind: 'words', words: [HOSTILE, 'plain'] }],
    },
  ],
  options: [flag('--json')],
  rootOptions: [flag('--version')],
  hasHelpWord: true,
}

const ALL = ['--all', '--json']
const ISSUE = ['--kind', '--scopes', '--out', '--root', '--name', '--tag', '--force', '--json']

/** Lines up to the cursor, with the candidates of each. */
const CASES: readonly (readonly [line: string, candidates: readonly string[]])[] = [
  ['tool-x ', ['keys', 'strange']],
  ['tool-x st', ['strange']],
  ['tool-x -', ['--json', '--version']],
  ['tool-x help ', ['keys', 'strange']],
  ['tool-x help keys ', ['issue', 'list']],
  ['tool-x help keys list ', []],
  ['tool-x keys ', ['issue', 'list']],
  ['tool-x keys -', ['--top', '--json']],
  ['tool-x --json keys l', ['list']],
  ['tool-x keys list ', []],
  ['tool-x keys list -', ALL],
  ['tool-x keys list --a', ['--all']],
  ['tool-x keys list --all -', ['--json']],
  ['tool-x keys list x -', ALL],
  ['tool-x nothing ', []],
  ['tool-x keys issue --', ISSUE],
  ['tool-x keys issue --kind p', ['public', 'private']],
  ['tool-x keys issue --kind public --', ISSUE.filter((name) => name !== '--kind')],
  ['tool-x keys issue --kind=public --k', []],
  ['tool-x keys issue --tag a --t', ['--tag']],
  ['tool-x keys issue --name ', []],
  ['tool-x keys issue --name keys --fo', ['--force']],
  ['tool-x keys issue --out ', ['a file', 'one', 'two']],
  ['tool-x keys issue --out t', ['two']],
  ['tool-x keys issue --root ', ['two']],
  ['tool-x keys issue o', ['one']],
  ['tool-x keys issue -- o', ['one']],
  ['tool-x keys issue -- one --', []],
]

interface Completer {
  readonly installed: boolean
  complete(script: string, lines: readonly string[], cwd: string): readonly (readonly string[])[]
}

function run(command: string, args: readonly string[], cwd: string, environment = {}): string {
  const { stdout, stderr, status, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: HANG_MILLIS,
    env: { PATH: process.env.PATH, HOME: cwd, TERM: 'dumb', LC_ALL: 'C.UTF-8', ...environment },
  })
  expect([status, error], stderr).toEqual([0, undefined])
  return stdout
}

/** Returns the lines without their separators, and without the slash after a directory. */
function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\r$/, '').replace(/\/$/, ''))
  return lines.filter((line) => line !== '')
}

/** Splits a line as bash does before it calls a completion function. */
function bashWords(line: string): string[] {
  const words = line.match(/[=:]+|[^ =:]+/g) ?? []
  return /[ ]$/.test(line) ? [...words, ''] : [...words]
}

const BASH_DRIVER = `
. ../script
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
COMPREPLY=()
_tool_x
printf '%s\\n' "\${COMPREPLY[@]}"
`

/** Completes a line in a terminal, and prints what the completion system adds for each. */
const ZSH_DRIVER = `
zmodload zsh/zpty
zpty shell zsh -f -i
line() { zpty -w shell "$1" }
line "PROMPT= RPROMPT= fpath=($PWD/../functions \\$fpath)"
line "autoload -Uz compinit && compinit -u -D"
line 'compadd() { local -a added; if [[ " $* " == *" -"[OAD]" "* ]]; then
  builtin compadd "$@"; return; fi; builtin compadd -O added "$@"
  print -rl -- $added >>../out; builtin compadd "$@" }'
line 'finish() { print -r -- @end >>../out; zle kill-buffer }; zle -N finish'
line 'bindkey "^I" complete-word "^X" finish; LISTMAX=9999'
touch ../out
integer tries=0 ended=0
for typed in "$@"; do
  (( ended += 1 ))
  zpty -w -n shell "$typed"$'\\t\\C-x'
  while (( $(grep -c -x @end ../out 2>/dev/null) < ended )); do
    (( tries++ < 20000 )) || exit 1
    sleep 0.01
  done
done
zpty -d shell
cat ../out
`

const COMPLETERS: Readonly<Record<Shell, Completer>> = {
  bash: {
    installed: existsSync('/bin/bash'),
    complete(script, lines, cwd) {
      writeFileSync(join(cwd, 'script'), script)
      return lines.map((line) => {
        const args = ['-c', BASH_DRIVER, 'bash', ...bashWords(line)]
        return linesOf(run('/bin/bash', args, join(cwd, 'files')))
      })
    },
  },
  zsh: {
    installed: existsSync('/usr/bin/zsh'),
    complete(script, lines, cwd) {
      mkdirSync(join(cwd, 'functions'))
      writeFileSync(join(cwd, 'functions/_tool-x'), script)
      return lines.map((line) => {
        rmSync(join(cwd, 'out'), { force: true })
        const args = ['-f', '-c', ZSH_DRIVER, 'zsh', line]
        return linesOf(run('/usr/bin/zsh', args, join(cwd, 'files')).replace('@end\n', ''))
      })
    },
  },
  fish: {
    installed: existsSync('/usr/bin/fish'),
    complete(script, lines, cwd) {
      writeFileSync(join(cwd, 'script'), script)
      const command = 'source ../script; for line in $argv; complete -C "$line"; echo @end; end'
      const args = ['--no-config', '-c', command, ...lines]
      const text = run('/usr/bin/fish', args, join(cwd, 'files')).replaceAll(/\t.*/g, '')
      return text.split('@end\n').slice(0, lines.length).map(linesOf)
    },
  },
}

/** Names without the quotes of the shell, each once. */
function sortedNames(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => name.replaceAll('\\', '')))].sort()
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-shells-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  mkdirSync(join(path, 'files/two'), { recursive: true })
  for (const name of ['a file', 'one']) writeFileSync(join(path, 'files', name), '')
  return path
}

describe.each(SHELLS)('%s', (shell) => {
  const { installed, complete } = COMPLETERS[shell]

  // Skipped where the shell is not installed; `.ci/run` installs it.
  test.runIf(installed)(
    'completes each line with what the tables have and with nothing else',
    { tags: ['slow'], timeout: HANG_MILLIS },
    () => {
      const script = completionScript(shell, PROGRAM)
      const lines = CASES.map(([line]) => line)
      const found = complete(script, lines, directory()).map((names) => sortedNames(names))
      const wanted = CASES.map(([line, names]) => [line, sortedNames(names)])
      expect(lines.map((line, i) => [line, found[i]])).toEqual(wanted)
    },
  )

  test.runIf(installed)(
    'completes the value after an equals sign and after a comma',
    { tags: ['slow'], timeout: HANG_MILLIS },
    () => {
      const script = completionScript(shell, PROGRAM)
      const found = (line: string) =>
        sortedNames(complete(script, [line], directory())[0]!).join(' ')
      expect(found('tool-x keys issue --kind=pub')).toMatch(/^(?:--kind=)?public$/)
      expect(found('tool-x keys issue --kind=data:r')).toMatch(/^(?:--kind=)?(?:data:)?read$/)
      expect(found('tool-x keys issue one data:w')).toMatch(/^(?:data:)?write$/)
      expect(found('tool-x keys issue --scopes query,m')).toMatch(/^(?:query,)?mutation$/)
      expect(found('tool-x keys issue --root=t')).toMatch(/^(?:--root=)?two$/)
    },
  )

  test.runIf(installed)(
    'runs nothing of a summary or a value that has the syntax of a shell',
    { tags: ['slow'], timeout: HANG_MILLIS },
    () => {
      const cwd = directory()
      const [found = []] = complete(completionScript(shell, PROGRAM), ['tool-x strange '], cwd)
      expect(found.join('\n')).toContain('plain')
      expect(found.join('\n').replaceAll('\\', '')).toContain('$(touch ran)')
      expect([existsSync(join(cwd, 'ran')), existsSync(join(cwd, 'files/ran'))]).toEqual([
        false,
        false,
      ])
    },
  )

  test('a name with the syntax of a shell has no script', () => {
    for (const name of ['a$(b)', "a'", 'A;', '-x']) {
      const [command] = PROGRAM.commands
      const program = { ...PROGRAM, commands: [{ ...command!, name }] }
      expect(() => completionScript(shell, program)).toThrow('cannot be completed')
    }
    const program = { ...PROGRAM, options: [flag('--a`b`')] }
    expect(() => completionScript(shell, program)).toThrow('cannot be completed')
  })
})
