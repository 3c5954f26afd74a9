import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isSchema } from '../schema.ts'
import { MANAGEMENT_OPERATIONS } from './management.ts'
import type { Operation } from './operation.ts'

const FOLDER = import.meta.dirname

/** Returns the operations that the files of the folder export, under the names of the exports. */
async function exportedOperations(): Promise<[string, Operation][]> {
  const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  const modules = paths.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  const all = await Promise.all(modules.map((path) => import(join(FOLDER, path))))
  return all
    .flatMap((each) => Object.entries<object>(each))
    .filter((entry): entry is [string, Operation] => 'replay' in Object(entry[1]))
}

test('each operation is exported under its name, and no two have the same', async () => {
  const found = await exportedOperations()
  expect(found.length).toBeGreaterThan(MANAGEMENT_OPERATIONS.length)
  expect(found.map(([name]) => name)).toEqual(found.map(([, { name }]) => name))
  expect(new Set(found.map(([name]) => name)).size).toBe(found.length)
})

test('the list has every operation of the management origin once', async () => {
  const found = (await exportedOperations()).map(([, operation]) => operation)
  const management = found.filter(({ access }) => access.kind !== 'development')
  const names = (operations: readonly Operation[]) => operations.map(({ name }) => name).toSorted()
  expect(names(MANAGEMENT_OPERATIONS)).toEqual(names(management))
})

// A client knows the form of a response before it knows its status.
test('the responses of an operation that have a body have one schema', async () => {
  for (const [name, { replies }] of await exportedOperations()) {
    const schemas = Object.values(replies).filter(isSchema)
    expect(new Set(schemas).size, name).toBeLessThanOrEqual(1)
  }
})

test('a GET and a request that needs an Operation ID may be repeated', async () => {
  for (const [name, { method, operationId, replay }] of await exportedOperations()) {
    const isSafe = method === 'GET' || operationId === 'required'
    if (isSafe) expect(replay, name).toBe('safe')
  }
})
