/**
 * Finds mistakes that types cannot express and that are certain: promises of the SDK that no code
 * awaits, Queries and Mutations whose calls reach `fetch` or a timer, and secrets that an Action
 * reads without declaring them.
 */
import { join } from 'node:path'
import type ts from 'typescript-api'
import { codeFrame } from '../workspace/code-frames.ts'
import type { Problem } from '../workspace/problems.ts'
import type { TypeScriptApi } from './compilers.ts'
import type { CheckedFunction } from './messages.ts'

/** Globals that only Actions have. */
const ACTION_GLOBALS = new Set(['fetch', 'setTimeout', 'setInterval'])
const SDK_FILE = '/_generated/svc.d.ts'
const GLOBALS_FILE = '/_generated/globals.d.ts'

export interface SearchedProgram {
  readonly api: TypeScriptApi
  readonly program: ts.Program
  /** Directory of the Workspace. */
  readonly directory: string
}

export function certainMistakes(
  searched: SearchedProgram,
  functions: readonly CheckedFunction[],
): Problem[] {
  return new Search(searched).find(functions)
}

class Search {
  readonly #api: TypeScriptApi
  readonly #program: ts.Program
  readonly #checker: ts.TypeChecker
  readonly #directory: string
  /** Problems by location: several Functions may reach one. */
  readonly #found = new Map<string, Problem>()

  constructor({ api, program, directory }: SearchedProgram) {
    this.#api = api
    this.#program = program
    this.#checker = program.getTypeChecker()
    this.#directory = directory
  }

  find(functions: readonly CheckedFunction[]): Problem[] {
    for (const file of this.#program.getSourceFiles()) {
      if (this.#isOfWorkspace(file)) this.#findPromises(file)
    }
    for (const each of functions) {
      const handler = this.#handlerOf(each)
      if (handler !== null) this.#follow(handler, { of: each, chain: [], seen: new Set() })
    }
    return [...this.#found.values()]
  }

  #isOfWorkspace(file: ts.SourceFile): boolean {
    const path = file.fileName
    const inside = path.startsWith(`${this.#directory}/`) && !path.includes('/node_modules/')
    return inside && !file.isDeclarationFile
  }

  #findPromises(node: ts.Node): void {
    const { isExpressionStatement, isCallExpression, forEachChild } = this.#api
    if (isExpressionStatement(node) && isCallExpression(node.expression)) {
      const call = node.expression
      if (this.#declarationsIn(call.expression, SDK_FILE, GLOBALS_FILE)) {
        if (this.#isPromise(call)) this.#addDangling(call)
      } else this.#checkForEach(call)
    }
    forEachChild(node, (child) => this.#findPromises(child))
  }

  #addDangling(call: ts.CallExpression): void {
    const name = call.expression.getText().replace(/\s+/g, '').slice(-40)
    const message = `Nothing waits for ${name}(...): the call may end before it has happened.`
    this.#add(call, message, 'Write await in front of it.')
  }

  /** Finds `list.forEach(async ...)`, which waits for none of its promises. */
  #checkForEach(call: ts.CallExpression): void {
    const { isPropertyAccessExpression } = this.#api
    const [callback] = call.arguments
    const callee = call.expression
    if (callback === undefined || !isPropertyAccessExpression(callee)) return
    if (callee.name.text !== 'forEach') return
    const list = this.#checker.getTypeAtLocation(callee.expression)
    if (!this.#checker.isArrayType(list)) return
    const [signature] = this.#checker.getTypeAtLocation(callback).getCallSignatures()
    if (signature?.getReturnType().symbol?.name !== 'Promise') return
    const fix = 'Write for (const each of list) await ..., or await Promise.all(list.map(...)).'
    this.#add(callee.name, 'forEach waits for none of its promises.', fix)
  }

  #isPromise(node: ts.Expression): boolean {
    return this.#checker.getTypeAtLocation(node).symbol?.name === 'Promise'
  }

  /** Returns the function of the export, if it is written as the `handler` of an SDK call. */
  #handlerOf({ file, exported }: CheckedFunction): ts.Node | null {
    const { isVariableDeclaration, isCallExpression, isObjectLiteralExpression } = this.#api
    const source = this.#program.getSourceFile(join(this.#directory, file))
    const module = source === undefined ? undefined : this.#checker.getSymbolAtLocation(source)
    if (module === undefined) return null
    const symbol = this.#checker.getExportsOfModule(module).find(({ name }) => name === exported)
    const [declaration] = this.#resolved(symbol)?.declarations ?? []
    if (declaration === undefined || !isVariableDeclaration(declaration)) return null
    const call = declaration.initializer
    if (call === undefined || !isCallExpression(call)) return null
    const [definition] = call.arguments
    if (definition === undefined || !isObjectLiteralExpression(definition)) return null
    return definition.properties.find((each) => each.name?.getText() === 'handler') ?? null
  }

  /** Searches code that a Function executes, with the functions of the Workspace that it calls. */
  #follow(node: ts.Node, way: Way): void {
    const { isCallExpression, forEachChild } = this.#api
    if (isCallExpression(node)) {
      this.#checkCall(node, way)
      const callee = this.#functionOf(node.expression)
      if (callee !== null && !way.seen.has(callee)) {
        way.seen.add(callee)
        const name = node.expression.getText().slice(0, 40)
        this.#follow(callee, { ...way, chain: [...way.chain, name] })
      }
    }
    forEachChild(node, (child) => this.#follow(child, way))
  }

  #checkCall(call: ts.CallExpression, { of, chain }: Way): void {
    const { isIdentifier, isPropertyAccessExpression, isStringLiteralLike } = this.#api
    const callee = call.expression
    if (isIdentifier(callee) && of.kind !== 'action' && ACTION_GLOBALS.has(callee.text)) {
      if (!this.#declarationsIn(callee, GLOBALS_FILE)) return
      const kind = of.kind === 'query' ? 'Query' : 'Mutation'
      const way = chain.length === 0 ? '' : ` It is reached by ${[of.name, ...chain].join(' -> ')}.`
      const message = `A ${kind} has no ${callee.text}: ${of.name} is one.${way}`
      this.#add(callee, message, 'Move this into an action(...).')
      return
    }
    if (!isPropertyAccessExpression(callee) || callee.name.text !== 'secret') return
    const [name] = call.arguments
    if (name === undefined || !isStringLiteralLike(name) || of.kind !== 'action') return
    if (of.secrets.includes(name.text) || !this.#declarationsIn(callee, SDK_FILE)) return
    const message = `${of.name} reads the secret "${name.text}", which it does not declare.`
    this.#add(name, message, `Add uses: { secrets: ["${name.text}"] } to ${of.name}.`)
  }

  /** Returns the function of the Workspace that an expression names; null for any other. */
  #functionOf(callee: ts.Expression): ts.Node | null {
    const { isFunctionDeclaration, isVariableDeclaration, isFunctionLike } = this.#api
    if (!this.#isName(callee)) return null
    const [declaration] = this.#symbolOf(callee)?.declarations ?? []
    if (declaration === undefined || !this.#isOfWorkspace(declaration.getSourceFile())) return null
    if (isFunctionDeclaration(declaration)) return declaration
    if (!isVariableDeclaration(declaration)) return null
    const { initializer } = declaration
    return initializer !== undefined && isFunctionLike(initializer) ? initializer : null
  }

  /** Returns whether it is a name, alone or of an imported module. Others need type information. */
  #isName(callee: ts.Expression): boolean {
    const { isIdentifier, isPropertyAccessExpression, SymbolFlags } = this.#api
    if (isIdentifier(callee)) return true
    if (!isPropertyAccessExpression(callee) || !isIdentifier(callee.expression)) return false
    const owner = this.#checker.getSymbolAtLocation(callee.expression)
    return owner !== undefined && (owner.flags & SymbolFlags.Alias) !== 0
  }

  #symbolOf(node: ts.Expression): ts.Symbol | undefined {
    const { isPropertyAccessExpression } = this.#api
    const name = isPropertyAccessExpression(node) ? node.name : node
    return this.#resolved(this.#checker.getSymbolAtLocation(name))
  }

  #resolved(symbol: ts.Symbol | undefined): ts.Symbol | undefined {
    if (symbol === undefined || (symbol.flags & this.#api.SymbolFlags.Alias) === 0) return symbol
    return this.#checker.getAliasedSymbol(symbol)
  }

  #declarationsIn(node: ts.Expression, ...files: readonly string[]): boolean {
    const declarations = this.#symbolOf(node)?.declarations ?? []
    return declarations.some((each) =>
      files.some((file) => each.getSourceFile().fileName === `${this.#directory}${file}`),
    )
  }

  #add(node: ts.Node, message: string, fix: string): void {
    const source = node.getSourceFile()
    const start = node.getStart()
    const { line, character } = source.getLineAndCharacterOfPosition(start)
    const file = source.fileName.slice(this.#directory.length + 1)
    const at = { file, line: line + 1, column: character + 1 }
    const frame = codeFrame(source.text, at.line, at.column)
    this.#found.set(`${file}:${start}`, { ...at, message, fix, frame })
  }
}

/** A Function, and the calls that lead from its handler to the current code. */
interface Way {
  readonly of: CheckedFunction
  readonly chain: readonly string[]
  readonly seen: Set<ts.Node>
}
