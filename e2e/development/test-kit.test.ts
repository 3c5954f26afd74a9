/**
 * The first test of an author: the executable on the PATH, Node, and nothing installed.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import { argv } from '../argv.ts'
import { CLIENT } from '../harness.ts'

const root = mkdtempSync(join(tmpdir(), 'svc-first-test-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const PATH = [dirname(CLIENT), NODE_PATH].join(delimiter)

/** Runs a program without a network where the kernel lets this user have a namespace of its own. */
function offline(program: string, args: readonly string[], cwd: string) {
  const isolated = spawnSync('unshare', ['-rn', 'true']).status === 0
  const [first, ...rest] = isolated ? ['unshare', '-rn', program, ...args] : [program, ...args]
  const environment = { HOME: root, PATH, TMPDIR: root, NO_COLOR: '1' }
  return spawnSync(first!, rest, { cwd, encoding: 'utf8', env: environment })
}

test.each([
  ['chat', 2],
  ['api', 4],
  ['empty', 1],
])('the tests of a new %s Workspace pass without a network', (template, count) => {
  const created = offline(
    'svc',
    argv`init --template ${template} --root ${template}-root --workspace ${template}`,
    root,
  )
  expect(created.stderr).toBe('')
  const { status, stdout } = offline('node', ['--test'], join(root, template))
  expect(stdout).toMatch(new RegExp(`^# pass ${count}$`, 'm'))
  expect(status).toBe(0)
})

test('a test process leaves neither processes nor files behind', () => {
  expect(readdirSync(root).filter((name) => name.startsWith('svc-test-'))).toEqual([])
})
