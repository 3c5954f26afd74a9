/**
 * The way into the page: a start URL that works once, and the cookie that it is exchanged for. A
 * second use of the start URL means that two programs have it, so it ends what the first one began.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { encodeBase64Url } from '../../value/base64url.ts'
import { Secret } from '../../value/secret.ts'
import { type CheckedRequest, headerValues } from './request-checks.ts'

export const COOKIE = 'svc-console'
const TOKEN_BYTES = 32
/** Cookies of other ports of this machine come along; more are not looked at. */
const COOKIES_MAX = 64

export type RandomBytes = (length: number) => Uint8Array

export type StartUse = 'opened' | 'wrong' | 'repeated'

export class PageAccess {
  readonly #random: RandomBytes
  #start: Secret
  #cookie: Secret
  /** A part of every path of the page, so that a server at another port never gets the cookie. */
  #folder: string
  #state: 'unopened' | 'open' | 'over' = 'unopened'

  constructor(random: RandomBytes) {
    this.#random = random
    this.#start = this.#token()
    this.#cookie = this.#token()
    this.#folder = this.#token().reveal()
  }

  /** Returns a new name for a single use, which cannot be guessed. */
  newName(): string {
    return this.#token().reveal()
  }

  #token(): Secret {
    return new Secret(encodeBase64Url(this.#random(TOKEN_BYTES)))
  }

  /** The path of the start URL, which is a credential until its first use. */
  get startPath(): Secret {
    return new Secret(`/start/${this.#start.reveal()}`)
  }

  /** The path below which the page and all that it requests are, with a slash at its end. */
  get basePath(): string {
    return `/${this.#folder}/`
  }

  get setCookie(): string {
    const cookie = `${COOKIE}=${this.#cookie.reveal()}`
    return `${cookie}; Path=${this.basePath}; HttpOnly; SameSite=Strict`
  }

  /** Uses the token of a start URL. The second use of the right one closes the page. */
  useStart(token: string): StartUse {
    if (!equal(this.#start, token)) return 'wrong'
    if (this.#state !== 'unopened') {
      this.#state = 'over'
      return 'repeated'
    }
    this.#state = 'open'
    return 'opened'
  }

  /** Makes a new start URL, a new cookie and a new path; what was given before is void. */
  renew(): void {
    this.#start = this.#token()
    this.#cookie = this.#token()
    this.#folder = this.#token().reveal()
    this.#state = 'unopened'
  }

  /** Returns whether a request has the cookie of the open page. */
  isOpenTo(request: CheckedRequest): boolean {
    if (this.#state !== 'open') return false
    const pairs = headerValues(request, 'cookie')
      .flatMap((header) => header.split(';'))
      .slice(0, COOKIES_MAX)
    return pairs.some((pair) => {
      const [name, value] = pair.trim().split('=')
      return name === COOKIE && value !== undefined && equal(this.#cookie, value)
    })
  }
}

/** Compares digests, so that the time tells nothing about the secret. */
function equal(secret: Secret, given: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(secret.reveal()), digest(given))
}
