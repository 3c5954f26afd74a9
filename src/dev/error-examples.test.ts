/** The example of an error in src/docs/functions.md compiles against the types of a Workspace. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeWorkspace } from './new-workspaces.ts'

const ROOT = join(import.meta.dirname, '../..')
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const GUIDE = readFileSync(join(ROOT, 'src/docs/functions.md'), 'utf8')
const EXAMPLE = /```ts\n([\s\S]*?)```/.exec(GUIDE)?.[1] ?? ''

let workspace = ''
beforeAll(() => {
  workspace = join(mkdtempSync(join(tmpdir(), 'svc-examples-')), 'chat')
  writeWorkspace(workspace, { name: 'Chat' })
})
afterAll(() => rmSync(join(workspace, '..'), { recursive: true, force: true }))

/** Returns the output of the compiler, which is empty without errors. */
function compile(text: string): string {
  writeFileSync(join(workspace, 'functions/example.ts'), text)
  return spawnSync(TSC, ['-p', workspace], { encoding: 'utf8' }).stdout
}

test('the example catches a violation of a unique index', () => {
  expect(EXAMPLE).toContain('instanceof UniqueViolation')
  expect(compile(EXAMPLE)).toBe('')
})

test('a violation names one of the tables, and authors cannot construct one', {
  tags: ['slow'],
}, () => {
  const wrong = [
    'if (error instanceof UniqueViolation && error.table === "nope") return ctx.fail("NAME_TAKEN")',
    'throw new UniqueViolation("mine")',
  ]
  for (const line of wrong) {
    const text = EXAMPLE.replace('throw error', `${line}\n      throw error`)
    expect(compile(text)).toMatch(/functions\/example\.ts\(\d+,\d+\): error TS/)
  }
})
