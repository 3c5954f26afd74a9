/**
 * Databases for tests, on the real PostgreSQL 18 of the test run (global-setup.ts). Each test file
 * has its own. A file that needs a schema names a template, which is built at its first use.
 */
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Client } from 'pg'
import { inject } from 'vitest'

export interface TestDatabase {
  /** Superuser URL of this database. */
  readonly url: string
  /** Ends the connections of the database and removes it. */
  drop(): Promise<void>
}

export interface Template {
  /** Name by content: a migrated template has the checksum of its migrations. */
  readonly name: string
  /** Prepares an empty database for cloning. It must leave no connection open. */
  prepare(url: string): Promise<void>
}

let server: Promise<string> | undefined

export async function freshDatabase(template?: Template): Promise<TestDatabase> {
  server ??= askBroker(inject('postgresBroker'))
  const base = await server
  const source = template === undefined ? 'template0' : await templateDatabase(base, template)
  const name = `test_${randomBytes(8).toString('hex')}`
  await withClient(base, (client) => client.query(`create database ${name} template ${source}`))
  return {
    url: urlFor(base, name),
    drop: async () => {
      await withClient(base, (client) => client.query(`drop database ${name} with (force)`))
    },
  }
}

/** Builds a template once per run. An advisory lock makes other processes wait for the first. */
async function templateDatabase(base: string, template: Template): Promise<string> {
  const digest = createHash('sha256').update(template.name).digest()
  const name = `template_${digest.toString('hex').slice(0, 24)}`
  await withClient(base, async (client) => {
    await client.query('select pg_advisory_lock($1)', [digest.readInt32BE(0)])
    const found = await client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount !== 0) return
    const draft = `${name}_draft`
    await client.query(`drop database if exists ${draft} with (force)`)
    await client.query(`create database ${draft} template template0`)
    await template.prepare(urlFor(base, draft))
    await client.query(`alter database ${draft} rename to ${name}`)
  })
  return name
}

function urlFor(base: string, database: string): string {
  const url = new URL(base)
  url.pathname = `/${database}`
  return url.href
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

function askBroker(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path: '/', headers: { connection: 'close' } }, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      reply.on('end', () => {
        if (reply.statusCode === 200) resolve(text)
        else reject(new Error(text))
      })
    })
    asking.once('error', reject)
    asking.end()
  })
}
