/** The first defect of JSON that is read, without an exception for each member of a union. */
export class Failure {
  /** The path below the value that was read, such as `.items[3]`. */
  path = ''
  /** The expectation there. Never the received value. */
  rule = ''

  /** Notes the defect. Returns undefined, which every reader returns for JSON that it rejects. */
  fail(rule: string, path = ''): undefined {
    this.rule = rule
    this.path = path
    return undefined
  }

  /** Adds `part`, such as `.name` or `[3]`, to the path of a defect inside it. */
  within(part: string): undefined {
    this.path = part + this.path
    return undefined
  }
}
