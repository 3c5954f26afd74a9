import { describe, expect, test } from 'vitest'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { EnvironmentId, ProjectId } from '../../value/ids.ts'
import {
  formatKeyring,
  formatRootDescriptor,
  type RootDescriptor,
} from '../../value/product-root.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseKeyring, parseRootDescriptor } from './product-root.ts'

const descriptor: RootDescriptor = {
  version: 1,
  projectId: 'prj_01ARZ3NDEKTSV4RRFFQ69G5FAV' as ProjectId,
  environmentId: 'env_01ARZ3NDEKTSV4RRFFQ69G5FAV' as EnvironmentId,
  name: 'My app',
  slug: 'my-app',
  createdAtMicros: 1_800_000_000_000_000n,
  workspace: '../my-app',
  listen: null,
}
const json = JSON.parse(formatRootDescriptor(descriptor)) as Record<string, unknown>

test('a descriptor reads back as it was written, in any layout', () => {
  expect(parseRootDescriptor(formatRootDescriptor(descriptor))).toEqual(descriptor)
  expect(parseRootDescriptor(JSON.stringify(json, null, 2))).toEqual(descriptor)
})

test.each<[string, object]>([
  ['an unknown field', { ...json, region: 'eu' }],
  ['a missing field', { ...json, listen: undefined }],
  ['another version', { ...json, version: 2 }],
  ['an ID of another kind', { ...json, projectId: json.environmentId }],
  ['a lower-case ID', { ...json, projectId: String(json.projectId).toLowerCase() }],
  ['an empty name', { ...json, name: '' }],
  ['a name with a line feed', { ...json, name: 'a\nb' }],
  ['an upper-case slug', { ...json, slug: 'My-App' }],
  ['a time as number', { ...json, createdAtMicros: 5 }],
  ['a negative time', { ...json, createdAtMicros: '-5' }],
  ['a time beyond 2^53', { ...json, createdAtMicros: '9007199254740992' }],
  ['an empty workspace', { ...json, workspace: '' }],
])('a descriptor with %s is rejected', (_, changed) => {
  expect(() => parseRootDescriptor(JSON.stringify(changed))).toThrow(ValidationError)
})

describe('a keyring', () => {
  const key = { id: 'k1', key: encodeBase64Url(new Uint8Array(32).fill(7)), createdAtMicros: '5' }

  test('a keyring reads back as it was written', () => {
    const keyring = {
      version: 1,
      keys: [{ id: 'k1', key: new Uint8Array(32).fill(7), createdAtMicros: 5n }],
      active: 'k1',
    } as const
    expect(parseKeyring(formatKeyring(keyring))).toEqual(keyring)
  })

  test.each<[string, object]>([
    ['no key', { version: 1, keys: [], active: 'k1' }],
    ['an active key that it lacks', { version: 1, keys: [key], active: 'k2' }],
    ['one ID twice', { version: 1, keys: [key, key], active: 'k1' }],
    ['a short key', { version: 1, keys: [{ ...key, key: 'AAAA' }], active: 'k1' }],
    ['a padded key', { version: 1, keys: [{ ...key, key: `${key.key}=` }], active: 'k1' }],
    ['an odd ID', { version: 1, keys: [{ ...key, id: '../k1' }], active: '../k1' }],
  ])('a keyring with %s is rejected, without its key in the message', (_, changed) => {
    const parse = () => parseKeyring(JSON.stringify(changed))
    expect(parse).toThrow(ValidationError)
    expect(parse).not.toThrow(key.key.slice(0, 10))
  })
})
