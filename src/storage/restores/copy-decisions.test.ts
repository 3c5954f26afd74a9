import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CopyDecisions } from './copy-decisions.ts'

let directory: string
let path: string
let decisions: CopyDecisions

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-copy-decisions-'))
  path = join(directory, 'decisions.db')
  decisions = CopyDecisions.create(path)
})
afterEach(() => {
  decisions.close()
  rmSync(directory, { recursive: true, force: true })
})

test('a document that does not fit counts once, until a later version fits', () => {
  for (const id of ['one', 'one', 'two']) decisions.leaveOut('people', id)
  decisions.leaveOut('orders', 'three')
  const counts = () => Object.fromEntries(decisions.countLeftOut())
  expect(counts()).toEqual({ people: 2, orders: 1 })
  decisions.readmit('one')
  decisions.readmit('three')
  decisions.readmit('unknown')
  expect(counts()).toEqual({ people: 1 })
})

test('the newest decision about a changed document is known', () => {
  expect(decisions.changed('one')).toBeUndefined()
  decisions.noteChanged('one', true)
  expect(decisions.changed('one')).toBe(true)
  decisions.noteChanged('one', false)
  expect(decisions.changed('one')).toBe(false)
})

test('IDs beyond the bound of memory are on disk while the copy is made', {
  tags: ['slow'],
}, () => {
  const count = 150_000
  for (let i = 0; i < count; i += 1)
    decisions.noteChanged(`doc_${String(i).padStart(40, '0')}`, true)
  const memoryMax = 4 * 1024 * 1024
  const bytes = count * 44
  expect(statSync(path).size).toBeGreaterThan(bytes - memoryMax)
  expect(decisions.changed(`doc_${'0'.repeat(40)}`)).toBe(true)
})
