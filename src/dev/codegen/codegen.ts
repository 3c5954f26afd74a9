/**
 * Generates `_generated/`: the module "svc" with the types of one schema, as a package that test
 * runners resolve, and references to the Functions with resolved types, so that an application
 * compiles without the code of the Workspace.
 */
import type { FunctionManifest, WorkspaceDescription } from '../../value/manifest.ts'
import type { FieldsJson, LiteralJson, ValidatorJson } from '../../value/validators.ts'
import { keyText, shapesText, toShapes } from './shapes.ts'

export interface GeneratedFile {
  /** Relative to the Workspace, with forward slashes. */
  readonly path: string
  readonly text: string
}

/** The texts that are equal in all Workspaces. */
export interface SdkTexts {
  /** Declarations of the module "svc". */
  readonly module: string
  /** Declarations of the globals of a Function. */
  readonly globals: string
  /** The module "svc" as one ES module. */
  readonly runtime: string
  /** The module "svc/test", and its declarations. */
  readonly testKit: string
  readonly testKitTypes: string
}

/** Returns the references, which an application needs; the other files are for Functions. */
export function generateReferences(description: WorkspaceDescription): string {
  return apiText(description)
}

export function generateFiles(
  description: WorkspaceDescription,
  sdk: SdkTexts,
): readonly GeneratedFile[] {
  const texts = {
    'README.md': 'Written by `svc build`: do not edit.\n',
    'api.js': apiScript(description),
    'api.ts': apiText(description),
    'globals.d.ts': `${HEAD}\n${sdk.globals}`,
    'package.json': `${JSON.stringify(PACKAGE, null, 2)}\n`,
    'svc.d.ts': moduleText(description, sdk.module),
  }
  const files = Object.entries(texts).map(([name, text]) => ({ path: `_generated/${name}`, text }))
  return [...files, ...sharedFiles(sdk)]
}

/** Returns the generated files that are equal in all Workspaces of a version. */
export function sharedFiles({
  runtime,
  testKit,
  testKitTypes,
}: Omit<SdkTexts, 'module' | 'globals'>): readonly GeneratedFile[] {
  // A name that no test runner takes for that of a test.
  const texts = { 'svc.js': runtime, 'testing.js': testKit, 'testing.d.ts': testKitTypes }
  return Object.entries(texts).map(([name, text]) => ({
    path: `_generated/${name}`,
    text: `${HEAD}\n${text}`,
  }))
}

const HEAD = '/* eslint-disable */\n/** Written by `svc build`: do not edit. */\n'

/** The manifest that makes `_generated` the package `svc`. A link in `node_modules` is enough. */
const PACKAGE = {
  name: 'svc',
  version: '0.0.0',
  private: true,
  type: 'module',
  exports: {
    '.': { types: './svc.d.ts', default: './svc.js' },
    './test': { types: './testing.d.ts', default: './testing.js' },
    './package.json': './package.json',
  },
}

function moduleText({ tables }: WorkspaceDescription, module: string): string {
  const names = tables.map(({ name }) => `'${name}'`).join(' | ') || 'never'
  return `${HEAD}
import type schema from '../schema'

${module}
export interface Register {
  readonly schema: typeof schema
  readonly tables: ${names}
}
`
}

const API_TYPES = `/** The ID of a document: text that remembers its table. */
export type Id<Table extends string> = string & { readonly __table: Table }

/** A Function, with the types of its arguments, its result and the errors that it declares. */
export interface FunctionReference<
  Kind extends 'query' | 'mutation' | 'action',
  Arguments,
  Result,
  ErrorCode extends string,
> {
  readonly kind: Kind
  readonly name: string
  /** How the client encodes each argument. */
  readonly arguments: { readonly [name: string]: unknown }
  /** For the compiler; absent at run time. */
  readonly types?: {
    readonly arguments: Arguments
    readonly result: Result
    readonly errorCode: ErrorCode
  }
}

export type Query<Arguments, Result, ErrorCode extends string> = FunctionReference<
  'query',
  Arguments,
  Result,
  ErrorCode
>

export type Mutation<Arguments, Result, ErrorCode extends string> = FunctionReference<
  'mutation',
  Arguments,
  Result,
  ErrorCode
>

export type Action<Arguments, Result, ErrorCode extends string> = FunctionReference<
  'action',
  Arguments,
  Result,
  ErrorCode
>
`

function apiText(description: WorkspaceDescription): string {
  return `${HEAD}\n${API_TYPES}${treesText(description, referenceText)}`
}

/** Formats the references without types, for runtimes without TypeScript, such as Node 20. */
function apiScript(description: WorkspaceDescription): string {
  return `${HEAD}${treesText(description, referenceValue)}`
}

/** Formats the reference of one Function. `indent` is the indentation of its line. */
type FormatReference = (manifest: FunctionManifest, indent: string) => string

function treesText({ functions }: WorkspaceDescription, format: FormatReference): string {
  const textOf = (visibility: FunctionManifest['visibility']) =>
    treeText(treeOf(functions.filter((each) => each.visibility === visibility)), 1, format)
  return `
/** Functions that applications call. */
export const api = ${textOf('public')}

/** Functions that only other Functions call. */
export const internal = ${textOf('internal')}
`
}

interface Tree {
  readonly [name: string]: Tree | FunctionManifest
}

/** Splits a name: `admin/users.ban` becomes `admin`, `users`, `ban`. */
export function functionPath(name: string): readonly string[] {
  const dot = name.lastIndexOf('.')
  return [...name.slice(0, dot).split('/'), name.slice(dot + 1)]
}

function treeOf(functions: readonly FunctionManifest[]): Tree {
  const root: { [name: string]: Tree | FunctionManifest } = {}
  for (const each of functions) {
    const path = functionPath(each.name)
    let at = root
    for (const segment of path.slice(0, -1)) {
      at[segment] ??= {}
      at = at[segment] as typeof root
    }
    at[path.at(-1)!] = each
  }
  return root
}

function isFunction(node: Tree | FunctionManifest): node is FunctionManifest {
  return typeof node.name === 'string'
}

function treeText(tree: Tree, depth: number, format: FormatReference): string {
  const indent = '  '.repeat(depth)
  const lines = Object.entries(tree).map(([name, node]) => {
    const text = isFunction(node) ? format(node, indent) : treeText(node, depth + 1, format)
    return `${indent}${keyText(name)}: ${text},\n`
  })
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}${'  '.repeat(depth - 1)}}`
}

function referenceValue({ kind, name, ...types }: FunctionManifest): string {
  return `{ kind: '${kind}', name: '${name}', arguments: ${shapesText(toShapes(types.arguments))} }`
}

function referenceText(manifest: FunctionManifest, indent: string): string {
  const { kind, ...types } = manifest
  const codes = Object.keys(types.errors)
    .sort()
    .map((code) => `'APP_${code}'`)
  const parts = [
    fieldsText(types.arguments, 'written'),
    typeText(types.returns, 'read'),
    codes.join(' | ') || 'never',
  ]
  const generic = { query: 'Query', mutation: 'Mutation', action: 'Action' }[kind]
  const inner = parts.map((part) => `\n${indent}  ${part}`).join(',')
  return `${referenceValue(manifest)} as ${generic}<${inner}\n${indent}>`
}

/** The direction of values: a field with a default may be left out only of those written. */
type Direction = 'read' | 'written'

/** Formats a validator as the TypeScript type of the values that it accepts, or returns. */
export function typeText(json: ValidatorJson, direction: Direction): string {
  switch (json.type) {
    case 'null':
    case 'boolean':
    case 'string':
      return json.type
    case 'int64':
    case 'timestamp':
      return 'bigint'
    case 'float64':
      return 'number'
    case 'bytes':
      return 'Uint8Array'
    case 'any':
      return 'unknown'
    case 'id':
      return `Id<'${json.table}'>`
    case 'literal':
      return literalText(json.value)
    case 'array':
      return `${grouped(json.items, direction)}[]`
    case 'record':
      return `{ [key: string]: ${typeText(json.values, direction)} }`
    case 'object':
      return fieldsText(json.fields, direction)
    case 'nullable':
      return unionText([json.inner, { type: 'null' }], direction)
    case 'union':
      return unionText(json.members, direction)
    case 'open':
      return `${typeText(json.inner, direction)} | { unknown: true }`
  }
}

function unionText(members: readonly ValidatorJson[], direction: Direction): string {
  return [...new Set(members.map((member) => typeText(member, direction)))].join(' | ')
}

function grouped(json: ValidatorJson, direction: Direction): string {
  const text = typeText(json, direction)
  const isUnion = json.type === 'union' || json.type === 'nullable' || json.type === 'open'
  return isUnion ? `(${text})` : text
}

function literalText(value: LiteralJson): string {
  if ('string' in value) return JSON.stringify(value.string)
  return 'boolean' in value ? String(value.boolean) : `${value.int64}n`
}

function fieldsText(fields: FieldsJson, direction: Direction): string {
  const members = Object.entries(fields).map(([name, field]) => {
    const isPresent =
      field.type !== 'optional' || (direction === 'read' && field.default !== undefined)
    const text = typeText(field.type === 'optional' ? field.inner : field, direction)
    return isPresent ? `${keyText(name)}: ${text}` : `${keyText(name)}?: ${text} | undefined`
  })
  return members.length === 0 ? 'Record<string, never>' : `{ ${members.join('; ')} }`
}
