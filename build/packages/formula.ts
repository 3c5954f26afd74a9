/** Renders the Homebrew formula of a release, which installs its archives. */

/** SHA-256 of the archives of a release in hex, by target. */
export type ArchiveDigests = ReadonlyMap<string, string>

export interface ReleasedArchives {
  readonly version: string
  /** URL of the directory that has the archives, without a slash at its end. */
  readonly url: string
  readonly digests: ArchiveDigests
}

const SYSTEMS = [
  ['macos', 'darwin'],
  ['linux', 'linux'],
] as const
const MACHINES = [
  ['arm', 'arm64'],
  ['intel', 'x64'],
] as const

/** Returns the formula, with the machines whose archives the release has. */
export function formula({ version, url, digests }: ReleasedArchives): string {
  const systems = SYSTEMS.map(([system, prefix]) => {
    const machines = MACHINES.map(([machine, suffix]) => {
      const target = `${prefix}-${suffix}`
      const digest = digests.get(target)
      if (digest === undefined) return ''
      return `    on_${machine} do
      url "${url}/svc-${version}-${target}.tar.gz"
      sha256 "${digest}"
    end
`
    }).filter((text) => text !== '')
    return machines.length === 0 ? '' : `  on_${system} do\n${machines.join('\n')}  end\n`
  })
  return `class Svc < Formula
  desc "Application backend in one executable: typed Functions, live data and files"
  homepage "${new URL(url).origin}"
  version "${version}"
  license "Apache-2.0"

${systems.filter((text) => text !== '').join('\n')}
${BODY}`
}

const BODY = `  def install
    bin.install "svc-server"
    # One executable, which acts by the name that it is started with.
    bin.install_symlink "svc-server" => "svc"
    bash_completion.install Dir["share/bash-completion/completions/*"]
    fish_completion.install Dir["share/fish/vendor_completions.d/*"]
    zsh_completion.install Dir["share/zsh/site-functions/*"]
    man1.install Dir["share/man/man1/*"]
    man8.install Dir["share/man/man8/*"]
    doc.install "LICENSE", "THIRD-PARTY-LICENSES", "CHANGELOG.md", "dist-config"
    (pkgshare/"installed-by").write "homebrew\\n"
  end

  def caveats
    <<~EOS
      The service reads secrets from #{etc}/svc, which you write before its first start:
        identity-database-url       the URL of a PostgreSQL database
        platform-identity-pepper    32 random bytes as URL-safe base64 without padding
      "svc docs operations" and "svc docs settings" explain them.
    EOS
  end

  service do
    run [opt_bin/"svc-server", "serve"]
    environment_variables SERVICE_IDENTITY_DATABASE_URL_FILE:    etc/"svc/identity-database-url",
                          SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: etc/"svc/platform-identity-pepper",
                          SERVICE_STATE_DIRECTORY:               var/"svc/state"
    keep_alive crashed: true
    error_log_path var/"log/svc-server.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/svc --version")
    assert_match version.to_s, shell_output("#{bin}/svc-server version")
  end
end
`
