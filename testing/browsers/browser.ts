/** The browser of a login, which approves every request of the provider, as a person would. */
export interface Browser {
  /** Opens the URL, submits each form that it meets and returns the first page without one. */
  visit(url: string): Promise<Page>
  close(): Promise<void>
}

export interface Page {
  readonly url: string
  readonly title: string
  /** Titles of the submitted forms. */
  readonly forms: readonly string[]
}

const HOPS_MAX = 20

/** A page without a redirect, or the first URL that begins with `end`. */
interface Stop {
  readonly url: string
  readonly html: string
}

/** A browser over HTTP that keeps cookies and follows redirects. It runs no script. */
export function httpBrowser({ end }: { readonly end?: string } = {}): Browser {
  const cookies = new Map<string, string>()
  const request = async (url: string, method: 'GET' | 'POST'): Promise<Stop> => {
    let next = { url, method }
    for (let hop = 0; hop < HOPS_MAX; hop++) {
      if (end !== undefined && next.url.startsWith(end)) return { url: next.url, html: '' }
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(next.url, {
        method: next.method,
        redirect: 'manual',
        headers: { cookie },
      })
      const html = await response.text()
      for (const line of response.headers.getSetCookie()) {
        const [name = '', value = ''] = line.split(';')[0]!.split('=')
        cookies.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) return { url: next.url, html }
      next = { url: new URL(location, next.url).href, method: 'GET' }
    }
    throw new Error('too many redirects')
  }
  return {
    visit: async (start) => {
      const forms: string[] = []
      let { url, html } = await request(start, 'GET')
      while (html.includes('<form method="post">')) {
        forms.push(titleOf(html))
        ;({ url, html } = await request(url, 'POST'))
      }
      return { url, title: titleOf(html), forms }
    },
    close: async () => {},
  }
}

function titleOf(html: string): string {
  return /<title>([^<]*)<\/title>/.exec(html)?.[1] ?? ''
}
