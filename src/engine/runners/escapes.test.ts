/**
 * Goal: code of a Workspace cannot reach an object of the outer realm. Method: each payload passes
 * every object that it can reach to `out`, which tries to evaluate code in that object's realm.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HOOKS, PAYLOADS, PRELUDE } from '../../../testing/hostile/payloads.ts'
import { oneDocument, poolBench } from '../../../testing/runners.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerHost } from '../calls/outcomes.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'

const bench = poolBench()
const { pool, release, call } = bench

beforeAll(async () => {
  await pool.start({ sandbox: 'preferred' })
})
afterAll(() => pool.close())

const members = Object.entries(PAYLOADS).map(
  ([name, payload]) =>
    `${name}: query(async (ctx, input) => (${payload}) ? 'OUT' : 'in', { errors: ERRORS }),`,
)
const schema = `tables({ t: { fields: { x: {} }, indexes: [
  { name: 'i', fields: ['x'], unique: false },
] } })`

function releaseWith(prelude: string): ReleaseCode {
  const code = release(members.join('\n'), schema)
  const errors = "const ERRORS = { OUT: 'conflict', DONE: 'conflict' }\n"
  return { ...code, source: errors + prelude + code.source }
}

const plain = releaseWith(PRELUDE)
const spying = releaseWith(PRELUDE + HOOKS)

const host: RunnerHost = {
  operation: (op, invokePart) => {
    if (op[1] === 'reject') throw new OperationError('Rejected', 'no')
    return oneDocument.operation(op, invokePart)
  },
}
const argumentsText = '{"a":{"b":[1]}}'

test.each(Object.keys(PAYLOADS))('%s and stays inside', async (name) => {
  const outcome = await pool.invoke(plain, call(name, { argumentsText }), host)
  if (name === 'overflowsSend') expect(outcome).toMatchObject({ kind: 'failed', code: 'DONE' })
  else expect(outcome).toMatchObject({ kind: 'returned', result: 'in' })
})

test('hooks that are set while the code loads cannot escape either', async () => {
  for (const name of ['spiesInternals', 'takesContext', 'takesDocument', 'breaksDecoder']) {
    const outcome = await pool.invoke(spying, call(name, { argumentsText }), host)
    expect(outcome, name).toMatchObject({ kind: 'returned', result: 'in' })
  }
})
