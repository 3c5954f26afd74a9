/**
 * Compares what a test of a Workspace waits for, an environment in a new process and 100 calls,
 * with the start of `svc dev` to its first answer.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from '../../build/bundle.ts'
import { kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { type Figure, median } from '../figure.ts'
import { DevelopmentProcess } from '../saves/development-process.ts'

/** A test may take twice as long as a server that answers its first call. */
const RATIO_MIN = 1 / 2
const SAMPLES_PER_ROUND = 3

/** Prints the milliseconds until the first environment is open, then those of 100 calls. */
const SCRIPT = `
import { testEnvironment } from 'svc/test'
import { api } from './_generated/api.js'
const startedAt = performance.now()
const backend = await testEnvironment()
const openedAt = performance.now()
const channel = await backend.mutation(api.channels.create, { name: 'general', author: 'Ada' })
for (let i = 0; i < 50; i++) {
  await backend.mutation(api.messages.send, { channel, author: 'Ada', body: 'Hello' })
  await backend.query(api.messages.list, { channel })
}
const calledAt = performance.now()
const second = await testEnvironment()
const secondAt = performance.now()
console.log(JSON.stringify([openedAt - startedAt, calledAt - openedAt, secondAt - calledAt]))
await backend.close()
`

export const TEST_KIT: readonly Figure[] = [
  {
    name: 'test kit, environment and 100 calls',
    baseline: 'svc dev to its first answer',
    ratioMin: RATIO_MIN,
    documents: 'sqlite',
    measure: async (_, { rounds }) => {
      const workspace = kitWorkspace('chat', { 'measured.mjs': SCRIPT })
      try {
        const samples: (readonly [opened: number, called: number, second: number])[] = []
        const starts: number[] = []
        for (let i = 0; i < rounds * SAMPLES_PER_ROUND; i++) {
          starts.push(await startMillis())
          samples.push(sample(workspace.directory))
        }
        const [opened, called, second] = [0, 1, 2].map((at) => median(samples.map((s) => s[at]!)))
        const candidate = opened! + called!
        const parts = [opened, called, second].map((millis) => millis!.toFixed(0))
        return {
          ratio: median(starts) / candidate,
          candidate: side(
            samples.map(([open, calls]) => open + calls),
            ` (${parts.join(' + ')})`,
          ),
          baseline: side(starts),
          failure: null,
        }
      } finally {
        workspace.remove()
      }
    },
  },
]

async function startMillis(): Promise<number> {
  const development = new DevelopmentProcess(10)
  try {
    return await development.start()
  } finally {
    await development.stop()
  }
}

function sample(cwd: string): readonly [number, number, number] {
  const env = { ...process.env, SVC_EXECUTABLE: join(ROOT, 'dist/svc') }
  const { stdout, stderr } = spawnSync('node', ['measured.mjs'], { cwd, env, encoding: 'utf8' })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

function side(millis: readonly number[], note = '') {
  const sorted = millis.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, (sorted.length * share) | 0)]!
  const value = `${median(millis).toFixed(0)} ms${note}`
  return { value, p50Micros: at(0.5) * 1000, p99Micros: at(0.99) * 1000 }
}
