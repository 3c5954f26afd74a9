/**
 * Generates TypeScript modules from the SQL files under migrations/, so that the bundler, the
 * runtime and the tests use the same bytes. `--check` changes nothing and fails if a module is
 * stale.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assert } from '../src/errors/assert.ts'

export interface MigrationSet {
  readonly directory: string
  readonly module: string
}

export const MIGRATION_SETS: readonly MigrationSet[] = [
  { directory: 'migrations/identity', module: 'src/database/migrations.generated.ts' },
  { directory: 'migrations/control', module: 'src/storage/migrations.generated.ts' },
  { directory: 'migrations/logs', module: 'src/storage/logs/migrations.generated.ts' },
  {
    directory: 'migrations/documents/sqlite',
    module: 'src/documents/sqlite/migrations.generated.ts',
  },
  {
    directory: 'migrations/documents/postgres',
    module: 'src/documents/postgres/migrations.generated.ts',
  },
]

const FILE = /^([0-9]{4})-([a-z0-9]+(?:-[a-z0-9]+)*)\.sql$/

/** Returns the text of one generated module. Versions are 1, 2, 3, ... without a gap. */
export function renderMigrations(root: string, set: MigrationSet): string {
  const files = readdirSync(join(root, set.directory)).sort()
  const rows = files.map((file, i) => {
    const match = FILE.exec(file)
    assert(match !== null, `${set.directory}/${file} must have a name like 0001-some-name.sql`)
    assert(Number(match[1]) === i + 1, `${set.directory}/${file} leaves a gap in the versions`)
    const sql = readFileSync(join(root, set.directory, file), 'utf8')
    // A carriage return would make the checksum depend on the checkout.
    assert(!sql.includes('\r'), `${set.directory}/${file} has a carriage return`)
    const head = `  {\n    version: ${i + 1},\n    name: '${match[2]}',\n`
    return `${head}    sql: \`${templateText(sql)}\`,\n  },\n`
  })
  return (
    `/** Generated from ${set.directory} by build/embed-migrations.ts. Do not edit. */\n\n` +
    'export const MIGRATIONS: readonly {\n' +
    '  readonly version: number\n  readonly name: string\n  readonly sql: string\n' +
    `}[] = [\n${rows.join('')}]\n`
  )
}

function templateText(sql: string): string {
  return sql.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')
}

/** Returns the modules that differ from their SQL files. */
export function staleMigrations(root: string): string[] {
  return MIGRATION_SETS.filter((set) => readModule(root, set) !== renderMigrations(root, set)).map(
    (set) => set.module,
  )
}

function readModule(root: string, set: MigrationSet): string | null {
  try {
    return readFileSync(join(root, set.module), 'utf8')
  } catch {
    return null
  }
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  const stale = staleMigrations(root)
  const check = process.argv.includes('--check')
  for (const set of MIGRATION_SETS) {
    if (check || !stale.includes(set.module)) continue
    mkdirSync(dirname(join(root, set.module)), { recursive: true })
    writeFileSync(join(root, set.module), renderMigrations(root, set))
  }
  for (const module of stale) {
    process.stdout.write(
      `${module} ${check ? 'is stale: run bun build/embed-migrations.ts' : ''}\n`,
    )
  }
  process.exitCode = check && stale.length > 0 ? 1 : 0
}
