/**
 * The baseline of durable Mutations in PostgreSQL: single-row INSERTs from 8 connections, each its
 * own transaction, by pgbench where it is installed, otherwise by the same loop with pg.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { assert } from '../../src/errors/assert.ts'
import { execute } from '../../testing/databases/cluster.ts'
import { type LoadResult, toLoadResult, WARM_UP_SHARE } from '../load.ts'

const CONNECTIONS = 8
const PGBENCH = Bun.which('pgbench')

export const INSERTS_BY = `${PGBENCH === null ? 'pg' : 'pgbench'} INSERTs, ${CONNECTIONS} clients`

export interface SingleInserts {
  /** Inserts rows whose text is `body`. */
  run(body: string, seconds: number): Promise<LoadResult>
}

/** Creates the table. `directory` receives what pgbench writes. */
export async function singleInserts(url: string, directory: string): Promise<SingleInserts> {
  await execute(
    url,
    'create table rows (id bigint generated always as identity primary key, body text not null)',
  )
  return {
    run: async (body, seconds) =>
      PGBENCH === null
        ? runClients(url, body, seconds)
        : runPgbench(PGBENCH, { url, directory, body, seconds }),
  }
}

interface PgbenchRun {
  readonly url: string
  readonly directory: string
  readonly body: string
  readonly seconds: number
}

function runPgbench(pgbench: string, { url, directory, body, seconds }: PgbenchRun): LoadResult {
  const folder = mkdtempSync(join(directory, 'pgbench-'))
  const script = join(folder, 'insert.sql')
  writeFileSync(script, `insert into rows (body) values ('${body}');\n`)
  const { status, stderr } = spawnSync(
    pgbench,
    [
      '--no-vacuum',
      '--protocol=prepared',
      `--client=${CONNECTIONS}`,
      `--time=${Math.ceil(seconds)}`,
      `--file=${script}`,
      '--log',
      url,
    ],
    { cwd: folder, encoding: 'utf8' },
  )
  assert(status === 0, `pgbench ended with ${status}: ${stderr}`)
  const rows = readdirSync(folder)
    .filter((name) => name.startsWith('pgbench_log.'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .map((line) => line.split(' ').map(Number))
  rmSync(folder, { recursive: true })
  // Columns: client, transaction, latency in microseconds, script, end in seconds and microseconds.
  const ends = rows.map((row) => row[4]! * 1000 + row[5]! / 1000)
  const first = ends.reduce((a, b) => Math.min(a, b))
  const last = ends.reduce((a, b) => Math.max(a, b))
  const countFrom = first + (last - first) * WARM_UP_SHARE
  const counted = rows.filter((_, i) => ends[i]! >= countFrom).map((row) => row[2]! / 1000)
  return toLoadResult(counted, (last - countFrom) / 1000)
}

async function runClients(url: string, body: string, seconds: number): Promise<LoadResult> {
  const clients = Array.from({ length: CONNECTIONS }, () => new Client({ connectionString: url }))
  await Promise.all(clients.map((client) => client.connect()))
  const insert = { name: 'insert', text: 'insert into rows (body) values ($1)', values: [body] }
  const latencies: number[] = []
  const startAt = performance.now()
  const countFrom = startAt + seconds * 1000 * WARM_UP_SHARE
  const stopAt = startAt + seconds * 1000
  const insertRepeatedly = async (client: Client): Promise<void> => {
    for (let before = startAt; before < stopAt; ) {
      await client.query(insert)
      const after = performance.now()
      if (before >= countFrom) latencies.push(after - before)
      before = after
    }
  }
  await Promise.all(clients.map(insertRepeatedly))
  await Promise.all(clients.map((client) => client.end()))
  return toLoadResult(latencies, seconds * (1 - WARM_UP_SHARE))
}
