/** Tests of the manual pages and completions that a release has. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_CODES } from '../src/client/command-line/help.ts'
import { COMMANDS } from '../src/client/main.ts'
import { MODES } from '../src/server/usage.ts'
import { VARIABLES } from '../src/settings/variables.ts'
import { sharedFiles } from './man/shared-files.ts'

const HANG_MILLIS = 240_000
const files = sharedFiles('2026-01-31')

function write(): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-share-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const { path, bytes } of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), bytes)
  }
  return root
}

const pages = files.map(({ path }) => path).filter((path) => path.startsWith('share/man/'))

function run(command: string, args: readonly string[]) {
  return spawnSync(command, args, { encoding: 'utf8', timeout: HANG_MILLIS })
}

// Skipped where mandoc is not installed; `.ci/run` installs it.
const hasMandoc = existsSync('/usr/bin/mandoc')

test.runIf(hasMandoc)(
  'mandoc has no warning about a manual page',
  { tags: ['slow'], timeout: HANG_MILLIS },
  () => {
    const root = write()
    const paths = pages.map((path) => join(root, path))
    const { stdout } = run('/usr/bin/mandoc', ['-T', 'lint', '-W', 'style', ...paths])
    // The pages refer to each other, and are not where the manuals of the system are.
    const lines = stdout.split('\n').filter((line) => line !== '' && !/ Xr svc/.test(line))
    expect(lines.map((line) => line.replaceAll(root, ''))).toEqual([])
  },
)

test.runIf(hasMandoc)(
  'the pages have every command, option, mode, setting and exit code',
  { tags: ['slow'], timeout: HANG_MILLIS },
  () => {
    const root = write()
    const shown = (path: string): string =>
      run('/usr/bin/mandoc', ['-T', 'utf8', '-O', 'width=400', join(root, path)])
        .stdout.replaceAll(/.\u0008/g, '')
        .replaceAll('\u2010', '-')
    for (const { name, options } of COMMANDS) {
      const text = shown(`share/man/man1/svc-${name.split(' ')[0]}.1`)
      expect(text).toContain(`svc ${name}`)
      for (const option of Object.keys(options)) expect(text).toContain(`--${option}`)
    }
    const server = shown('share/man/man8/svc-server.8')
    for (const [mode] of MODES) expect(server).toContain(`svc-server ${mode}`)
    for (const { name, required } of VARIABLES) {
      if (required !== 'client only') expect(server).toContain(name)
    }
    const client = shown('share/man/man1/svc.1')
    for (const [exit, text] of Object.entries(EXIT_CODES)) {
      expect(client).toMatch(new RegExp(`\\n +${exit} +${text}\\.`))
    }
  },
)

test('the same sources give the same files', { tags: ['slow'] }, () => {
  expect(sharedFiles('2026-01-31')).toEqual(files)
})

const SHELLS = [
  ['bash', '/bin/bash', ['-n', 'share/bash-completion/completions/']],
  ['zsh', '/usr/bin/zsh', ['-n', 'share/zsh/site-functions/_']],
  ['fish', '/usr/bin/fish', ['--no-execute', 'share/fish/vendor_completions.d/']],
] as const

test.each(SHELLS)('%s parses the scripts of both programs', (shell, path, [option, prefix]) => {
  if (!existsSync(path)) return
  const root = write()
  for (const name of ['svc', 'svc-server']) {
    const file = join(root, `${prefix}${name}${shell === 'fish' ? '.fish' : ''}`)
    expect(run(path, [option, file])).toMatchObject({ status: 0, stderr: '' })
  }
})

test('bash completes the values that the parser accepts', () => {
  const script = join(write(), 'share/bash-completion/completions/svc')
  const complete = (...words: string[]): string => {
    const call = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc; echo "\${COMPREPLY[*]}"`
    const text = `. ${script}; ${call}`
    return run('/bin/bash', ['-c', text, 'bash', ...words]).stdout.trim()
  }
  expect(complete('svc', 'clients', 'create', '--kind', '')).toBe('public confidential development')
  expect(complete('svc', 'buckets', 'keys', 'issue', '--access', 'w')).toBe('write')
  expect(complete('svc', 'mcp', 'all')).toBe('allow')
})
