/**
 * The commands of documents that act on a server, run in order as they are written.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SERVER_RUNS } from '../../build/samples/runs/server.ts'
import { readDocument } from './reader.ts'
import { type Machine, serverMachine } from './worlds.ts'

let machine: Machine
beforeAll(async () => {
  machine = await serverMachine()
})
afterAll(() => machine?.dispose())

test.each([...SERVER_RUNS])('the commands of $document succeed', async (run) => {
  const { commands } = await readDocument(run, await machine.open())
  expect(commands.length).toBeGreaterThan(0)
})
