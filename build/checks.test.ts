/**
 * Runs the compiler and the linter, so that a run of all tests reports their findings too.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

function tool(name: string, args: readonly string[]): string {
  const result = spawnSync(join(ROOT, 'node_modules/.bin', name), args, {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return result.status === 0 ? '' : result.stdout + result.stderr
}

/** Beside others the compiler takes minutes, and on a slow machine a multiple. */
const TIMEOUT_MILLIS = 900_000

test('the compiler finds no type errors', { timeout: TIMEOUT_MILLIS }, () => {
  expect(tool('tsc', ['-p', '.'])).toBe('')
})

test('the formatter and the linter have no findings', {
  timeout: TIMEOUT_MILLIS,
}, () => {
  expect(tool('biome', ['check', '--diagnostic-level=warn', '.'])).toBe('')
})
