/** Users of Firebase Authentication, from the JSON of `firebase auth:export`. */
import {
  isJsonObject,
  type JsonObject,
  parseStrictJson,
  ROUNDED,
} from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { itemsOf } from '../archives/json-items.ts'
import type { DefectiveDocument, SourceDocument, SourceValue } from '../documents/source-values.ts'
import type { SourceCollection } from '../source.ts'

export const USERS = 'users.json'
const TIMES = ['createdAt', 'lastSignedInAt'] as const
/** Every other field stays in the export, above all password hashes, salts and second factors. */
const KEPT = [
  'email',
  'emailVerified',
  'displayName',
  'photoUrl',
  'phoneNumber',
  'disabled',
  'customAttributes',
] as const
const PROVIDER = ['providerId', 'rawId', 'email', 'displayName', 'photoUrl'] as const
const MILLISECONDS = /^[0-9]{1,15}$/

export function usersCollection(files: ExportFiles, table: string): SourceCollection {
  return {
    name: 'Authentication',
    table,
    indexes: [{ name: 'byEmail', fields: ['email'], unique: false }],
    declare: () => {},
    async *documents() {
      for await (const item of itemsOf(USERS, files.read(USERS))) yield documentOf(item)
    },
  }
}

function documentOf(item: Uint8Array): SourceDocument | DefectiveDocument {
  let json: JsonObject = {}
  try {
    const parsed = parseStrictJson(item, ROUNDED)
    if (isJsonObject(parsed)) json = parsed
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
  const kept = picked(json, ['localId', ...TIMES, ...KEPT])
  const providers = Array.isArray(json.providerUserInfo) ? json.providerUserInfo : []
  const linked = providers.map((each) => (isJsonObject(each) ? picked(each, PROVIDER) : {}))
  // A line of a file that is left out must not have a secret either.
  const raw = Buffer.from(JSON.stringify({ ...kept, providerUserInfo: linked }))
  const { localId: id, createdAt, lastSignedInAt, ...rest } = kept
  if (typeof id !== 'string') return { defect: 'It has no localId.', raw }
  const fields = new Map<string, SourceValue>(Object.entries(rest))
  for (const [name, time] of Object.entries({ createdAt, lastSignedInAt })) {
    if (time === undefined) continue
    if (!MILLISECONDS.test(time)) return { defect: `Expected milliseconds as ${name}.`, raw }
    fields.set(name, new Timestamp(BigInt(time) * 1_000n))
  }
  fields.set(
    'providerUserInfo',
    linked.map((each) => new Map<string, SourceValue>(Object.entries(each))),
  )
  return { id, fields, raw }
}

/** Returns the texts and booleans of these names. */
function picked(json: JsonObject, names: readonly string[]): Record<string, string> {
  const found = names.flatMap((name) => {
    const value = Object.hasOwn(json, name) ? json[name] : undefined
    return typeof value === 'string' || typeof value === 'boolean' ? [[name, value] as const] : []
  })
  return Object.fromEntries(found) as Record<string, string>
}
