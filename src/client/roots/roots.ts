/**
 * The directory that links the client to one Environment: `service.json` names the Environment,
 * `management.json` its Management origin. Neither is secret.
 */
import { join, resolve } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import {
  DESCRIPTOR_FILE,
  formatRootDescriptor,
  ROOT_FILE_BYTES_MAX,
  type RootDescriptor,
} from '../../value/product-root.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { rule } from '../../wire/rules.ts'
import { schema } from '../../wire/schema.ts'
import type { ClientEnvironment } from '../environment.ts'
import { explanation } from '../explanations.ts'
import { createFile, readIfPresent } from '../files.ts'
import { canonicalOrigin } from '../origins.ts'

export const LINK_FILE = 'management.json'
const PUBLIC_FILE = 0o644

const LinkFile = schema({
  version: '1',
  managementOrigin: [
    'string',
    ':',
    rule('a canonical origin', (text: string) => canonicalOrigin(text) === text),
  ],
})

export interface Root {
  /** Absolute. */
  readonly directory: string
  readonly descriptor: RootDescriptor
}

export function resolvePath(environment: ClientEnvironment, path: string): string {
  return resolve(environment.workingDirectory, path)
}

/**
 * Opens the root at `path`, by default the working directory. Throws CLIENT_ROOT_INVALID,
 * CLIENT_FILE_FAILED.
 */
export async function openRoot(
  environment: ClientEnvironment,
  path: string | undefined,
): Promise<Root> {
  const directory = resolvePath(environment, path ?? '.')
  const descriptor = await readDescriptor(directory)
  if (descriptor !== null) return { directory, descriptor }
  const next =
    path === undefined
      ? 'Name the root with --root DIR. Create one with `svc init`, or connect one with `svc link`.'
      : `Name a directory that has one, as \`svc init\` and \`svc dev\` create it.`
  throw new Fault('CLIENT_ROOT_INVALID', {
    detail: `${directory} has no ${DESCRIPTOR_FILE}.`,
    cause: explanation({ next }),
  })
}

/** Returns null if there is no descriptor. Throws CLIENT_ROOT_INVALID, CLIENT_FILE_FAILED. */
export function readDescriptor(directory: string): Promise<RootDescriptor | null> {
  return readRootFile(join(directory, DESCRIPTOR_FILE), async (text) => {
    const { parseRootDescriptor } = await import('../../wire/files/product-root.ts')
    return parseRootDescriptor(text)
  })
}

/** Creates the descriptor; returns false if there is one already. */
export function createDescriptor(directory: string, descriptor: RootDescriptor): boolean {
  const path = join(directory, DESCRIPTOR_FILE)
  return createFile(path, formatRootDescriptor(descriptor), PUBLIC_FILE)
}

/**
 * Returns the Management origin; null if the root is not linked. Throws CLIENT_ROOT_INVALID,
 * CLIENT_FILE_FAILED.
 */
export function readLink(directory: string): Promise<string | null> {
  return readRootFile(join(directory, LINK_FILE), async (text) => {
    const { parse } = await import('../../wire/reading/read.ts')
    return parse(LinkFile, parseStrictJson(text)).managementOrigin
  })
}

/** Creates the link; returns false if there is one already. */
export function createLink(directory: string, managementOrigin: string): boolean {
  const content = `${canonicalJson({ version: 1, managementOrigin })}\n`
  return createFile(join(directory, LINK_FILE), content, PUBLIC_FILE)
}

/**
 * Reads and parses a file of the root; returns null if it is missing. Throws CLIENT_FILE_FAILED,
 * and CLIENT_ROOT_INVALID for invalid content.
 */
export async function readRootFile<T>(
  path: string,
  parse: (text: string) => Promise<T>,
): Promise<T | null> {
  const bytes = readIfPresent(path, ROOT_FILE_BYTES_MAX)
  if (bytes === null) return null
  try {
    return await parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    const rule = error instanceof ValidationError ? error.message : 'UTF-8 text'
    throw new Fault('CLIENT_ROOT_INVALID', { detail: `${path}: ${rule}.` })
  }
}
