import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Fault } from '../errors/fault.ts'
import { readWorkspaceFiles } from './workspace-files.ts'

test('a folder or a setting that cannot be read is named', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  chmodSync(directory, 0o755)
  mkdirSync(join(directory, 'functions/a'), { recursive: true })
  for (const file of ['schema.ts', 'svc.json']) writeFileSync(join(directory, file), '{}')
  for (const path of ['functions/a', 'svc.json']) chmodSync(join(directory, path), 0)
  const error = asNobody(() => failureOf(directory))
  chmodSync(join(directory, 'functions/a'), 0o700)
  rmSync(directory, { recursive: true })
  expect(error).toMatchObject({ code: 'WORKSPACE_INVALID' })
  expect(error.detail).toContain('functions/a\n  It cannot be read: EACCES.')
  expect(error.detail).toContain('svc.json\n  It cannot be read: EACCES.')
})

function failureOf(directory: string): Fault {
  try {
    readWorkspaceFiles(directory)
  } catch (error) {
    return error as Fault
  }
  return expect.unreachable('it is read')
}

/** The root user may read everything. */
function asNobody<T>(work: () => T): T {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    return work()
  } finally {
    process.seteuid?.(0)
  }
}
