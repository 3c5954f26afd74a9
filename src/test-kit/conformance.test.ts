/**
 * Goal: a Function has the same results and errors under the test kit as on a server. Method:
 * random programs run one after the other in both, on documents that they have left. IDs are
 * compared by the order in which the documents were created.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LocalDevelopment } from '../../testing/development/local-development.ts'
import { fc } from '../../testing/properties.ts'
import { SEED } from '../../testing/seeds.ts'
import { PROGRAM_FILES, type Program, programs } from '../../testing/test-kit/programs.ts'
import { type KitWorkspace, kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { createClient } from '../app-client/node.ts'
import { testEnvironment } from './test-kit.ts'

const PROGRAMS_MAX = 2_000
/** Number of programs that always run. More follow until each kind of outcome has occurred. */
const PROGRAMS_MIN = process.env.SVC_TEST_LONG === '1' ? PROGRAMS_MAX : 60
const OUTCOMES = ['query', 'mutation', 'action', 'FUNCTION_FAILED', 'APP_NO', 'UNIQUE_VIOLATION']

const server = new LocalDevelopment()
let workspace: KitWorkspace
let close: () => void
/** Runs Functions in the kit or on a server. */
type Run = (kind: Program['kind'], name: string, args: object) => Promise<unknown>
let onServer: Run
let inKit: Run

beforeAll(async () => {
  workspace = kitWorkspace('empty', PROGRAM_FILES)
  for (const [path, text] of Object.entries(PROGRAM_FILES)) server.write(path, text)
  const { url, applicationKey } = await server.start()
  const client = createClient({ url, applicationKey, target: 'channel:dev' })
  const shapes = { documents: { array: 'string' }, steps: 'any' } as const
  onServer = async (kind, name, args) => {
    // Documents of one millisecond are in the order of their IDs.
    await new Promise((resolve) => setTimeout(resolve, 2))
    const named = { name, arguments: name === 'programs.all' ? {} : shapes }
    if (kind === 'query') return client.query({ kind, ...named }, args)
    if (kind === 'mutation') return client.mutation({ kind, ...named }, args)
    return client.action({ kind, ...named }, args)
  }
  process.env.SVC_EXECUTABLE = workspace.executable
  const backend = await testEnvironment({ workspace: workspace.directory, log: () => undefined })
  inKit = (kind, name, args) => backend[kind](name, args)
  close = () => {
    client.close()
    void backend.close()
  }
})
afterAll(async () => {
  close()
  workspace.remove()
  await server.dispose()
})

interface Outcome {
  /** Returns the result or the code of the error, with numbers in place of IDs. */
  readonly text: string
  readonly documents: number
}

async function outcomeOf(run: Run, { kind, name, steps }: Program): Promise<Outcome> {
  const before = (await run('query', 'programs.all', {})) as string[]
  const documents = before.length === 0 ? [`notes_${'7'.repeat(26)}`] : before
  const outcome = await run(kind, name, { documents, steps }).catch((error) => ({
    code: error.code,
    retryable: error.retryable,
  }))
  const after = (await run('query', 'programs.all', {})) as string[]
  const numbers = new Map([...documents, ...after.filter((id) => !before.includes(id))].entries())
  const known = new Map([...numbers].map(([number, id]) => [id, number]))
  return { text: JSON.stringify(outcome, numbered(known)), documents: after.length }
}

/** Replaces IDs by numbers; those of removed documents in the order of their appearance. */
function numbered(known: Map<string, number>) {
  return (_: string, value: unknown): unknown => {
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value !== 'string' || !/^notes_[0-9A-Z]{26}$/.test(value)) return value
    if (!known.has(value)) known.set(value, known.size)
    return `notes ${known.get(value)}`
  }
}

test(`programs have the same outcome in the kit and on a server (SVC_SEED=${SEED})`, async () => {
  const kinds = new Set<string>()
  const sample = fc.sample(programs, { seed: SEED, numRuns: PROGRAMS_MAX })
  for (const [number, program] of sample.entries()) {
    if (number >= PROGRAMS_MIN && OUTCOMES.every((each) => kinds.has(each))) break
    const [kit, expected] = await Promise.all([
      outcomeOf(inKit, program),
      outcomeOf(onServer, program),
    ])
    expect(kit, JSON.stringify(program, numbered(new Map()))).toEqual(expected)
    kinds.add(/"code":"([A-Z_]+)"/.exec(kit.text)?.[1] ?? program.kind)
  }
  expect([...kinds]).toEqual(expect.arrayContaining(OUTCOMES))
})
