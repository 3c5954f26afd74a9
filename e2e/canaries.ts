/** Searches for secrets in every encoding that a program is likely to use. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Client } from 'pg'

/** The searched data: names of files, tables and outputs, with their bytes. */
export type Locations = ReadonlyMap<string, Buffer>

/** Returns the names of the locations that contain the secret in any form. */
export function findLocations(secret: string, locations: Locations): string[] {
  const needles = spellings(secret)
  const holds = (bytes: Buffer): boolean => needles.some((needle) => bytes.includes(needle))
  return [...locations].filter(([, bytes]) => holds(bytes)).map(([name]) => name)
}

/** Returns the text, its random part, the decoded bytes, and each of them in hex and Base64. */
export function spellings(secret: string): Buffer[] {
  const random = secret.replace(/^rk_[a-z]+_v1_/, '')
  const texts = [secret, random, random.slice(-32)].map((text) => Buffer.from(text))
  const decoded = Buffer.from(random, 'base64url')
  const sources = decoded.toString('base64url') === random ? [...texts, decoded] : texts
  return sources.flatMap((source) => [
    source,
    Buffer.from(source.toString('hex')),
    Buffer.from(source.toString('hex').toUpperCase()),
    ...[0, 1, 2].flatMap((offset) => base64Cores(source, offset)),
  ])
}

/** Returns the Base64 text that does not depend on the bytes around the source, at an offset. */
function base64Cores(source: Buffer, offset: number): Buffer[] {
  const bits = (offset + source.length) * 8
  const text = Buffer.concat([Buffer.alloc(offset), source]).toString('base64')
  const core = text.slice(Math.ceil((offset * 8) / 6), Math.floor(bits / 6))
  const forUrls = core.replaceAll('+', '-').replaceAll('/', '_')
  return [Buffer.from(core), Buffer.from(forUrls)]
}

/** Marks the contents of an archive segment. */
export const DECOMPRESSED = ', decompressed'

/** Returns the files by their path, and the contents of the archive segments among them. */
export function filesBelow(directory: string): Map<string, Buffer> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return new Map(
    files.flatMap((entry) => {
      const path = join(entry.parentPath, entry.name)
      const name = relative(directory, path)
      const bytes = readIfPresent(path)
      // A segment that was being written has its name now.
      if (bytes === null) return []
      const found: [string, Buffer][] = [[name, bytes]]
      // The compressed bytes of an archive segment would hide what is in it.
      if (name.endsWith('.zst')) {
        found.push([`${name}${DECOMPRESSED}`, Buffer.from(Bun.zstdDecompressSync(bytes))])
      }
      return found
    }),
  )
}

function readIfPresent(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Returns the files once an archive segment is among them. */
export async function allFiles(directory: string): Promise<Map<string, Buffer>> {
  for (;;) {
    const files = filesBelow(directory)
    if ([...files.keys()].some((name) => name.endsWith(DECOMPRESSED))) return files
    await Bun.sleep(100)
  }
}

/** Returns the rows of every table of the database, as PostgreSQL prints them. */
export async function databaseRows(url: string): Promise<Map<string, Buffer>> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema')`,
    )
    const tables = new Map<string, Buffer>()
    for (const { name } of rows) {
      const found = await client.query(`select t::text as row from ${name} t`)
      tables.set(`table ${name}`, Buffer.from(found.rows.map(({ row }) => row).join('\n')))
    }
    return tables
  } finally {
    await client.end()
  }
}

/**
 * Creates a database login for one run, so that its password is a secret that can be searched for.
 * The file with the URL gets that login; `administrator` is the URL from before.
 */
export async function ownDatabaseLogin(file: string): Promise<{ own: URL; administrator: string }> {
  const administrator = readFileSync(file, 'utf8')
  const own = new URL(administrator)
  own.username = `canary_${randomBytes(6).toString('hex')}`
  own.password = randomBytes(32).toString('base64url')
  const role = `create role ${own.username} superuser login password '${own.password}'`
  await administer(administrator, role)
  writeFileSync(file, own.href, { mode: 0o600 })
  return { own, administrator }
}

export async function administer(url: string, statement: string): Promise<void> {
  const administration = new URL(url)
  administration.pathname = '/postgres'
  const client = new Client({ connectionString: administration.href })
  await client.connect()
  await client.query(statement)
  await client.end()
}
