/** Reads the two files that make a directory a Product root (value/product-root.ts). */
import { decodeBase64Url } from '../../value/base64url.ts'
import {
  KEY_BYTES,
  KEYS_MAX,
  type KeyringFile,
  type RootDescriptor,
} from '../../value/product-root.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { idField, Micros, Name, text } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { rule, someEntries } from '../rules.ts'
import { schema } from '../schema.ts'

const TEXT_MAX = 4_096

/** Time that a double holds exactly: until the year 2255. */
const SafeMicros = schema([
  Micros,
  ':',
  rule('Unix microseconds', (decimal: string) => Number.isSafeInteger(Number(decimal))),
])

const OptionalText = schema([
  [
    'string',
    ':',
    rule('a text or null', (text: string) => {
      return text !== '' && text.length <= TEXT_MAX && !text.includes('\0')
    }),
  ],
  '|',
  'null',
])

const DescriptorFile = schema({
  version: '1',
  projectId: idField('prj'),
  environmentId: idField('env'),
  name: Name,
  slug: text(/^[a-z][a-z0-9-]{0,62}$/, 'a slug such as my-app'),
  createdAtMicros: SafeMicros,
  workspace: OptionalText,
  listen: OptionalText,
})

const KeyringContent = schema({
  version: '1',
  keys: [
    [
      {
        id: text(/^[a-z0-9][a-z0-9-]{0,31}$/, 'a key ID'),
        key: ['string', ':', rule(`base64url of ${KEY_BYTES} bytes`, isKey)],
        createdAtMicros: SafeMicros,
      },
      '[]',
    ],
    ':',
    someEntries(KEYS_MAX, `1 to ${KEYS_MAX} keys`),
  ],
  active: 'string',
})

/** Parses the descriptor with any white space, since people edit it. Throws ValidationError. */
export function parseRootDescriptor(text: Uint8Array | string): RootDescriptor {
  const descriptor = parse(DescriptorFile, parseStrictJson(text))
  return { ...descriptor, createdAtMicros: BigInt(descriptor.createdAtMicros) }
}

/** Parses the keyring. Throws ValidationError without any key in its message. */
export function parseKeyring(text: Uint8Array | string): KeyringFile {
  const { version, keys, active } = parse(KeyringContent, parseStrictJson(text))
  const ids = new Set(keys.map(({ id }) => id))
  if (ids.size !== keys.length) throw new ValidationError('each key ID once', '$.keys')
  if (!ids.has(active)) throw new ValidationError('the ID of a key', '$.active')
  return {
    version,
    keys: keys.map(({ id, key, createdAtMicros }) => ({
      id,
      key: decodeBase64Url(key),
      createdAtMicros: BigInt(createdAtMicros),
    })),
    active,
  }
}

function isKey(text: string): boolean {
  try {
    return decodeBase64Url(text).length === KEY_BYTES
  } catch {
    return false
  }
}
