/**
 * A release after this one: the sources of this checkout with one more migration of some databases,
 * which state that the programs of this checkout can use what they leave, or are one way.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../build/bundle.ts'
import { MIGRATION_SETS } from '../../build/embed-migrations.ts'
import type { Programs } from './previous-release.ts'

const VERSION = '99.0.0'
const COPIED = ['src', 'migrations', 'build', 'package.json', 'tsconfig.json']

/** The SQL of its migrations by the folder of the database. */
export type NextMigrations = Readonly<Record<string, string>>

/** Columns and a table that programs of this checkout do not know. */
export const EXPANSION: NextMigrations = {
  'migrations/control': 'alter table environment add column later text;',
  'migrations/logs': 'alter table log_records add column later text;',
  'migrations/documents/sqlite':
    'alter table documents add column later text;\nalter table operations add column later text;',
  'migrations/documents/postgres':
    'alter table documents add column later text;\nalter table operations add column later text;',
}

/** Changes of all databases. Those of the identity database are always one way. */
export const ONE_WAY: NextMigrations = {
  ...EXPANSION,
  'migrations/identity': 'alter table service_operators add column later text;',
}

/** Makes the programs in a folder below `dist`, which the caller removes with `dispose`. */
export function nextPrograms(migrations: NextMigrations): Programs & { dispose(): void } {
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, 'dist/next-'))
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const effects = join(folder, 'migrations/effects.json')
  const stated = JSON.parse(readFileSync(effects, 'utf8'))
  for (const { directory } of MIGRATION_SETS) {
    const sql = migrations[directory]
    if (sql === undefined) continue
    const known = readdirSync(join(folder, directory)).length
    const file = `${directory}/${String(known + 1).padStart(4, '0')}-expand.sql`
    writeFileSync(join(folder, file), `-- Has what comes later.\n\n${sql}\n`)
    if (migrations !== ONE_WAY) {
      stated[file.replace('migrations/', '')] = { readableFrom: known }
    }
  }
  writeFileSync(effects, JSON.stringify(stated))
  const version = join(folder, 'src/value/version.ts')
  const source = readFileSync(version, 'utf8')
  writeFileSync(version, source.replace(/VERSION = '.+'/, `VERSION = '${VERSION}'`))
  for (const script of ['embed-migrations.ts', 'embed-log-writer.ts']) {
    const made = spawnSync(process.execPath, [join(folder, 'build', script)], { cwd: folder })
    if (made.status !== 0) throw new Error(`${script} failed: ${made.stderr}`)
  }
  for (const name of ['svc', 'svc-server']) {
    const main = join(folder, 'src/main.ts')
    const program = `#!/bin/sh\nexec '${process.execPath}' '${main}' ${name} "$@"\n`
    writeFileSync(join(folder, name), program)
    chmodSync(join(folder, name), 0o755)
  }
  return {
    version: VERSION,
    server: join(folder, 'svc-server'),
    client: join(folder, 'svc'),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  }
}
