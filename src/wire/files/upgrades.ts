/** The file of a Product root that names the backup which was made before migrations. */
import { canonicalJson } from '../../value/canonical-json.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { idField, integer, Micros } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { type Infer, schema } from '../schema.ts'

/** Schema versions of the databases; 0 for one that does not exist. */
const versions = {
  identity: integer(0),
  control: integer(0),
  documents: integer(0),
  logs: integer(0),
} as const

const UpgradeFile = schema({
  version: '1',
  backupId: idField('bkp'),
  historyId: idField('hst'),
  sequence: integer(0),
  atMicros: Micros,
  /** Schema versions that the backup has. */
  found: versions,
  /** Schema versions that the migrations lead to. */
  target: versions,
} as const)
export type UpgradeBackup = Omit<Infer<typeof UpgradeFile>, 'version'>

export function formatUpgrade(backup: UpgradeBackup): string {
  return `${canonicalJson({ version: 1, ...backup } satisfies Json)}\n`
}

/** Throws ValidationError. */
export function parseUpgrade(text: Uint8Array): UpgradeBackup {
  const { version: _, ...backup } = parse(UpgradeFile, parseStrictJson(text))
  return backup
}
