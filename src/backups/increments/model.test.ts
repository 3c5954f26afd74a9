/**
 * Goal: what a reader rebuilds from the segments is the state of the server at that sequence.
 * Method: random commits, changes of the control and identity databases, files, bases, restarts and
 * failures of the target. The test keeps the documents of each sequence itself.
 *
 * @module-tag slow
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { expect, test } from 'vitest'
import { failingTarget } from '../../../testing/backups/failing-target.ts'
import {
  type FollowedServerBench,
  followedServer,
  write,
} from '../../../testing/backups/followed-servers.ts'
import { rebuildState } from '../../../testing/backups/rebuilt-state.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { SEED } from '../../../testing/seeds.ts'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { isFault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import type { HistoryId } from '../../value/ids.ts'
import { Opener, recipientOf } from '../format/age-files.ts'
import { verifyBackup } from '../format/backup-reader.ts'
import { selectBackup } from '../format/chain.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { S3Target } from '../targets/s3.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { ContinuousBackup } from './continuous-backup.ts'

const HISTORY = 'hst_00000000000000000000000001' as HistoryId
const ADDRESS = { environmentId: ENVIRONMENT_ID, historyId: HISTORY }
const STEPS = 120
const STATES = 12

interface Model {
  readonly random: Random
  readonly system: TestSystem
  readonly bench: FollowedServerBench
  readonly target: ReturnType<typeof failingTarget>
  backup: ContinuousBackup
  newBackup(): ContinuousBackup
  /** The text of each document after each sequence. */
  readonly states: Map<number, ReadonlyMap<string, string>>
}

const STEP_KINDS: Readonly<Record<string, (model: Model) => Promise<void>>> = {
  commit: async ({ random, bench, states }) => {
    const count = 1 + random.below(3)
    const numbers = new Set(Array.from({ length: count }, () => random.below(12)))
    const texts = [...numbers].map((number) => {
      return write('notes', number, random.below(4) === 0 ? null : `{"a":${random.below(99)}}`)
    })
    const file =
      random.below(3) === 0 ? await bench.stageFile(Buffer.from(`${numbers.size}`)) : null
    const writes = file === null ? texts : [...texts, write('fil', random.below(5), file)]
    await bench.commit(writes)
    const after = new Map(states.get(bench.store.latestSequence - 1) ?? [])
    for (const { id, text } of writes) {
      if (text === null) after.delete(id)
      else after.set(id, text)
    }
    states.set(bench.store.latestSequence, after)
  },
  control: async ({ random, bench }) => {
    const name = `N${random.below(6)}`
    bench.root.control.transaction((tx) => {
      if (random.below(3) === 0) tx.run('delete from configuration where name = ?1', name)
      else {
        tx.run(
          `insert or replace into configuration
                  (name, kind, value, revision, created_at, updated_at)
           values (?1, 'variable', ?2, 1, 5, 6)`,
          name,
          String(random.below(99)),
        )
      }
    })
  },
  identity: async ({ random, bench }) => {
    const id = `opr_${random.below(6)}`
    await bench.identity.rows(
      `insert into service_operators (operator_id, operator_name, created_at_micros)
       values ($1, 'x', 1)
       on conflict (operator_id) do update set created_at_micros = $2`,
      [id, random.below(99)],
    )
    const grant =
      random.below(2) === 0
        ? `insert into service_operator_grants
                  (operator_id, scope_kind, capabilities, created_at_micros, source)
           values ($1, 'installation', '{}', 1, 'invitation') on conflict do nothing`
        : 'delete from service_operator_grants where operator_id = $1'
    await bench.identity.rows(grant, [id])
  },
  flush: async ({ backup }) => ignoreUnavailable(backup.flush()),
  base: async ({ backup }) => {
    ignoreUnavailable(backup.makeBase('request')).catch(() => undefined)
  },
  wait: async ({ system, backup }) => {
    system.advance(60_000)
    await backup.whenBaseEnds()
  },
  fail: async ({ target }) => {
    target.isFailing = true
  },
  answer: async ({ target }) => {
    target.isFailing = false
  },
  restart: async (model) => {
    await model.backup.stop()
    await model.bench.restart()
    model.backup = model.newBackup()
    model.backup.start()
  },
}

const WEIGHTS: Readonly<Record<string, number>> = { commit: 8, flush: 5, control: 2, identity: 2 }
const KINDS = Object.keys(STEP_KINDS).flatMap((kind) =>
  Array.from({ length: WEIGHTS[kind] ?? 1 }, () => kind),
)

async function ignoreUnavailable(run: Promise<unknown>): Promise<void> {
  try {
    await run
  } catch (error) {
    if (!isFault(error, 'UNAVAILABLE') && !isFault(error, 'BUSY')) throw error
  }
}

async function run(
  kind: 'SQLite' | 'PostgreSQL',
  stored: (bench: FollowedServerBench) => BackupTarget,
) {
  const random = new Random(SEED)
  const system = new TestSystem()
  const bench = await followedServer(kind, system)
  const target = failingTarget(stored(bench))
  const secret = await generateX25519Identity()
  const recipients = [await recipientOf(secret)]
  const newBackup = () =>
    new ContinuousBackup({
      server: bench.server,
      target,
      recipients,
      historyId: HISTORY,
      baseIntervalMillis: 10 * 60_000,
      retention: { days: 0, bases: 2 },
      flushMillis: 2 ** 30,
      bufferBytesMax: 16_384,
    })
  const model: Model = {
    random,
    system,
    bench,
    target,
    newBackup,
    backup: newBackup(),
    states: new Map([[0, new Map()]]),
  }
  try {
    model.backup.start()
    for (let step = 0; step < STEPS; step++) await STEP_KINDS[random.pick(KINDS)]!(model)
    target.isFailing = false
    // The second base follows a gap that the first one may have met.
    for (let i = 0; i < 2; i++) {
      system.advance(60_000)
      await model.backup.flush()
      await model.backup.whenBaseEnds()
    }
    await model.backup.flush()
    await compare(model, secret)
  } finally {
    await model.backup.stop()
    await bench.close()
  }
}

async function compare({ bench, target, random, states, backup }: Model, secret: string) {
  const source = { target, opener: new Opener([secret]) }
  await verifyBackup(source, await selectBackup(target, ADDRESS))
  const newest = await rebuildState(source, ADDRESS, bench.keys)
  expect(newest.sequence).toBe(bench.store.latestSequence)
  expect(backup.state()).toMatchObject({ newestSequence: newest.sequence, behindMillis: 0 })
  expect(newest.control).toEqual(nonEmpty(bench.controlRows()))
  expect(newest.identity).toEqual(await bench.identityRows())
  let compared = 0
  for (let i = 0; i < STATES; i++) {
    const sequence = i === 0 ? newest.sequence : random.below(newest.sequence + 1)
    const rebuilt = await rebuildState(source, ADDRESS, bench.keys, sequence).catch(onlyCatchUp)
    if (rebuilt === null) continue
    const texts = new Map([...rebuilt.documents].map(([id, { text }]) => [id, text!]))
    expect(texts).toEqual(states.get(rebuilt.sequence))
    for (const [id, text] of texts) {
      if (!id.startsWith('fil_')) continue
      const digest = JSON.parse(text).sha256
      expect(rebuilt.blobs.has(digest), `${id} at ${sequence}`).toBe(true)
    }
    compared += 1
  }
  expect(compared).toBeGreaterThan(0)
}

function directoryTarget(path: string): DirectoryTarget {
  mkdirSync(path)
  return new DirectoryTarget(path)
}

const nonEmpty = <T>(tables: Map<string, Map<string, T>>) =>
  new Map([...tables].filter(([, rows]) => rows.size > 0))

function onlyCatchUp(error: Error): null {
  const isExpected = /inside a catch-up|it has no whole backup/.test(
    `${error.message} ${(error as { detail?: string }).detail}`,
  )
  if (!isExpected) throw error
  return null
}

test(
  `segments have each state of a server with SQLite (SVC_SEED=${SEED})`,
  {
    timeout: 120_000,
  },
  () => run('SQLite', (bench) => directoryTarget(join(bench.directory, 'target'))),
)

test(`segments in a bucket have each state of a server with PostgreSQL (SVC_SEED=${SEED})`, {
  timeout: 120_000,
}, async () => {
  const s3 = new S3Server()
  const keys = { accessKeyId: 'a', secretAccessKey: 's' }
  const address = { endpoint: s3.endpoint, bucket: 'backups', region: 'auto', ...keys }
  try {
    await run('PostgreSQL', () => new S3Target({ address, prefix: 'svc/' }))
  } finally {
    await s3.stop()
  }
})
