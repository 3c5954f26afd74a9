/**
 * Generates TypeScript modules from the SQL files under migrations/, so that the bundler, the
 * runtime and the tests use the same bytes. `--check` changes nothing and fails if a module is
 * stale.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import type { Migration } from '../src/value/databases/migrations.ts'
import { isFileStale, updateFiles } from './generated-files.ts'

/** Effects of migrations (migrations/README.md), by the path of the SQL file below the folder. */
type Effects = Readonly<
  Record<string, Pick<Migration, 'readableFrom' | 'documentMicros'> | undefined>
>

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

const EFFECTS = 'migrations/effects.json'
const FILE = /^([0-9]{4})-([a-z0-9]+(?:-[a-z0-9]+)*)\.sql$/

/** Returns the text of one generated module. Versions are 1, 2, 3, ... without a gap. */
export function renderMigrations(root: string, set: MigrationSet): string {
  const files = readdirSync(join(root, set.directory)).sort()
  const effects = readEffects(root)
  const rows = files.map((file, i) => {
    const match = FILE.exec(file)
    assert(match !== null, `${set.directory}/${file} must have a name like 0001-some-name.sql`)
    assert(Number(match[1]) === i + 1, `${set.directory}/${file} leaves a gap in the versions`)
    const sql = readFileSync(join(root, set.directory, file), 'utf8')
    // A carriage return would make the checksum depend on the checkout.
    assert(!sql.includes('\r'), `${set.directory}/${file} has a carriage return`)
    const head = `  {\n    version: ${i + 1},\n    name: '${match[2]}',\n`
    const effect = effects[`${set.directory.replace('migrations/', '')}/${file}`] ?? {}
    const fields = Object.entries(effect).map(([name, value]) => `    ${name}: ${value},\n`)
    return `${head}${fields.join('')}    sql: \`${templateText(sql)}\`,\n  },\n`
  })
  const value = relative(dirname(set.module), 'src/value/databases/migrations.ts')
  const specifier = value.startsWith('.') ? value : `./${value}`
  return (
    `/** Generated from ${set.directory} by build/embed-migrations.ts. Do not edit. */\n` +
    `import type { Migration } from '${specifier}'\n\n` +
    `export const MIGRATIONS: readonly Migration[] = [\n${rows.join('')}]\n`
  )
}

/** Throws for an effect of a file that does not exist, which would be without effect. */
function readEffects(root: string): Effects {
  const path = join(root, EFFECTS)
  if (!existsSync(path)) return {}
  const effects = JSON.parse(readFileSync(path, 'utf8')) as Effects
  for (const file of Object.keys(effects)) {
    assert(existsSync(join(root, 'migrations', file)), `${EFFECTS} names ${file}, which is missing`)
    // The contract lets no earlier program use a later schema (contract/management.md, Versioning).
    const isReadable = effects[file]?.readableFrom !== undefined && file.startsWith('identity/')
    assert(!isReadable, `${EFFECTS} states readableFrom of ${file}, which no program reads`)
  }
  return effects
}

function templateText(sql: string): string {
  return sql.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')
}

/** Returns the modules that differ from their SQL files. */
export function staleMigrations(root: string): string[] {
  return MIGRATION_SETS.filter((set) =>
    isFileStale(root, set.module, renderMigrations(root, set)),
  ).map((set) => set.module)
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  updateFiles(
    Object.fromEntries(MIGRATION_SETS.map((set) => [set.module, renderMigrations(root, set)])),
  )
}
