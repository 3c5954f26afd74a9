/** Questions on a real terminal, which `script` makes for a process whose input is a pipe. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SCRIPT = '/usr/bin/script'
const where = existsSync(SCRIPT) ? '' : ` (${SCRIPT} is missing)`
const MODULE = join(import.meta.dirname, 'terminal.ts')
const ASK = `console.log('answer ' + (await import('${MODULE}')).askOnTerminal('Continue? '))`

const BUN = process.execPath

test.skipIf(where !== '').each([
  ['y\n', 'true'],
  [' YES \n', 'true'],
  ['n\n', 'false'],
  ['\n', 'false'],
  ['yellow\n', 'false'],
  ['\u0004', 'false'],
])(`the answer %j on the terminal is %s${where}`, { tags: ['slow'] }, (input, answer) => {
  const command = `echo y | '${BUN}' -e "${ASK}"`
  const { stdout } = spawnSync(SCRIPT, ['-qec', command, '/dev/null'], { input, encoding: 'utf8' })
  expect(stdout).toContain('Continue? ')
  expect(stdout).toContain(`answer ${answer}`)
})

test('a process without a terminal gets no answer', () => {
  const child = spawnSync('setsid', ['--wait', BUN, '-e', ASK], { input: 'y\n', encoding: 'utf8' })
  expect(child.stdout).toBe('answer null\n')
})
