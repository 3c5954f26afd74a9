/** One window with the page of the chat template, used as a person does. */
import { expect } from 'vitest'
import type { Chromium, Tab } from '../../testing/browsers/chromium.ts'

const MESSAGES = "[...document.querySelectorAll('ol li:not(.system)')]"

export class ChatWindow {
  readonly #tab: Tab
  /** The messages that were written in this window, in order. */
  readonly sent: string[] = []

  private constructor(tab: Tab) {
    this.#tab = tab
  }

  /** Opens the page and sets a mark in it, so that a reload can be detected. */
  static async open(browser: Chromium, url: string): Promise<ChatWindow> {
    const tab = await browser.open(url)
    const window = new ChatWindow(tab)
    await window.until('connected', () => window.isConnected())
    await tab.evaluate('globalThis.neverReloaded = true')
    return window
  }

  async createChannel(name: string): Promise<void> {
    await this.#tab.type('nav form input', name)
    await this.#tab.enter()
  }

  /** Writes a message and sends it. */
  async send(body: string): Promise<void> {
    this.sent.push(body)
    await this.#tab.type('section form input', body)
    await this.#tab.enter()
  }

  isConnected(): Promise<boolean> {
    return this.#tab.evaluate(
      "document.querySelector('[role=status]')?.dataset.status === 'connected'",
    )
  }

  /** Returns the text of the line about the connection. */
  status(): Promise<string> {
    return this.#tab.evaluate("document.querySelector('[role=status]').textContent")
  }

  /** Returns the text of all messages, optimistic ones included. */
  shown(): Promise<string[]> {
    return this.#tab.evaluate(`${MESSAGES}.map((item) => item.querySelector('p').textContent)`)
  }

  /** Returns the messages that the server has not confirmed yet. */
  drafts(): Promise<number> {
    return this.#tab.evaluate("document.querySelectorAll('li[data-draft=true]').length")
  }

  alerts(): Promise<string[]> {
    return this.#tab.evaluate(
      "[...document.querySelectorAll('[role=alert]')].map((item) => item.textContent)",
    )
  }

  neverReloaded(): Promise<boolean> {
    return this.#tab.evaluate('globalThis.neverReloaded === true')
  }

  hasChannel(): Promise<boolean> {
    return this.#tab.evaluate("document.querySelector('section form input') !== null")
  }

  /** Polls until the condition holds. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const seen = async () => {
      if (await holds()) return ''
      return `not ${what}: ${await this.#tab.evaluate('document.body.innerText')}`
    }
    await expect.poll(seen, { timeout: 60_000, interval: 50 }).toBe('')
  }
}
