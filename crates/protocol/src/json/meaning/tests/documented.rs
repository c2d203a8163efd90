//! Every task type and method that the services document, with its parameters. None may be taken for a misspelling of
//! another. Gathered in November 2026 from public documentation and clients.

use super::*;

/// Each line: the service or `classic`, a type (with the `class` of a custom task) or a method, and its parameters. A
/// line that begins with a blank continues the one before.
const DOCUMENTED: &str = "\
capsolver GeeTestTaskProxyLess websiteURL gt challenge captchaId riskType geetestApiServerSubdomain
capsolver MtCaptchaTask websiteURL websiteKey proxy
capsolver MtCaptchaTaskProxyLess websiteURL websiteKey
capsolver ReCaptchaV2TaskProxyLess websiteURL websiteKey cookies proxy pageAction recaptchaDataSValue \
    enterprisePayload isInvisible isSession apiDomain
capsolver ReCaptchaV2EnterpriseTask websiteURL websiteKey proxy cookies pageAction enterprisePayload isInvisible \
    isSession apiDomain
capsolver ReCaptchaV3Task websiteURL websiteKey proxy pageAction enterprisePayload isSession apiDomain
capsolver ReCaptchaV3EnterpriseTaskProxyLess websiteURL websiteKey pageAction enterprisePayload isSession apiDomain
capsolver ReCaptchaV3M1Task websiteURL websiteKey proxy pageAction enterprisePayload isSession apiDomain
capsolver ReCaptchaV3M1TaskProxyLess websiteURL websiteKey pageAction isSession apiDomain
capsolver ReCaptchaV3EnterpriseM1Task websiteURL websiteKey proxy pageAction isSession
capsolver ReCaptchaV3EnterpriseM1TaskProxyLess websiteURL websiteKey pageAction isSession
capsolver AntiAwsWafTask websiteURL proxy awsKey awsIv awsContext awsChallengeJS awsApiJs awsProblemUrl awsApiKey \
    awsExistingToken
capsolver AntiAwsWafTaskProxyLess websiteURL awsKey awsIv awsContext awsChallengeJS awsApiJs awsProblemUrl awsApiKey \
    awsExistingToken
capsolver AntiAkamaiWebTask url abck bmsz userAgent
capsolver AntiAkamaiBMPTask packageName version deviceId deviceName count pow country
capsolver AntiBotdeflectorTaskProxyLess websiteURL domain flowToken
capsolver AntiCloudflareTask websiteURL proxy userAgent html
capsolver AntiTurnstileTaskProxyLess websiteURL websiteKey metadata
capsolver AntiImpervaTask websiteURL proxy userAgent html utmvc reese84 reeseScriptUrl reeseToken cookies
capsolver AntiImpervaTaskProxyLess websiteURL userAgent reeseScriptUrl reeseScriptURL script scriptURL isUtmvc cookies \
    language
capsolver DatadomeSliderTask websiteURL captchaUrl proxy userAgent html
capsolver YandexCaptchaTaskProxyLess websiteURL websiteKey
capsolver FriendlyCaptchaTaskProxyless websiteURL websiteKey
capsolver BinanceCaptchaTask websiteURL websiteKey validateId proxy
capsolver AwsWafClassification images question websiteURL
capsolver ImageToTextTask websiteURL body images module score case
capsolver ReCaptchaV2Classification image question websiteURL websiteKey
capsolver VisionEngine module image imageBackground question websiteURL
2captcha AlibabaTaskProxyless websiteURL sceneId prefix userId userUserId verifyType region userCertifyId apiGetLib \
    userAgent
2captcha AlibabaTask websiteURL sceneId prefix proxyType proxyAddress proxyPort proxyLogin proxyPassword
2captcha AltchaTaskProxyless websiteURL challengeURL challengeJSON
2captcha AmazonTaskProxyless websiteURL websiteKey iv context challengeScript captchaScript jsapiScript
2captcha AmazonTask websiteURL websiteKey iv context challengeScript captchaScript jsapiScript proxyType proxyAddress \
    proxyPort
2captcha AntiCyberSiAraTaskProxyless websiteURL SlideMasterUrlId userAgent
2captcha FunCaptchaTaskProxyless websiteURL websitePublicKey funcaptchaApiJSSubdomain data userAgent
2captcha AtbCaptchaTaskProxyless websiteURL appId apiServer
2captcha AudioTask body lang
2captcha BasiliskTaskProxyless websiteURL websiteKey userAgent
2captcha BasiliskTask websiteURL websiteKey userAgent proxyType proxyAddress proxyPort
2captcha BinanceTask websiteURL websiteKey validateId userAgent proxyType proxyAddress proxyPort
2captcha BinanceTaskproxyless websiteURL websiteKey validateId userAgent
2captcha BoundingBoxTask body comment imgInstructions canNoAnswer
2captcha CaptchaFoxTask websiteURL websiteKey userAgent apiServer proxyType proxyAddress proxyPort
2captcha CapyTaskProxyless websiteURL websiteKey userAgent
2captcha TurnstileTaskProxyless websiteURL websiteKey action data pagedata
2captcha CoordinatesTask body comment imgInstructions minClicks maxClicks
2captcha CutCaptchaTaskProxyless websiteURL miseryKey apiKey
2captcha DataDomeSliderTask websiteURL captchaUrl userAgent proxyType proxyAddress proxyPort
2captcha DragAndDropTask background images comment
2captcha DrawAroundTask body comment imgInstructions
2captcha FriendlyCaptchaTaskProxyless websiteURL websiteKey version moduleScript nomoduleScript
2captcha GridTask body rows columns comment imgInstructions minClicks maxClicks canNoAnswer previousId imgType
2captcha GeeTestTaskProxyless websiteURL gt challenge geetestApiServerSubdomain userAgent version initParameters \
    risk_type
2captcha HuntTask websiteURL apiGetLib userAgent data proxyType proxyAddress proxyPort
2captcha IncapsulaTask websiteURL incapsulaScriptUrl incapsulaCookies userAgent reese84UrlEndpoint proxyType \
    proxyAddress proxyPort
2captcha KeyCaptchaTaskProxyless websiteURL s_s_c_user_id s_s_c_session_id s_s_c_web_server_sign \
    s_s_c_web_server_sign2
2captcha LeminTaskProxyless websiteURL captchaId divId leminApiServerSubdomain userAgent
2captcha MtCaptchaTaskProxyless websiteURL websiteKey
2captcha ImageToTextTask body phrase case numeric math minLength maxLength comment imgInstructions
2captcha ProsopoTaskProxyless websiteURL websiteKey
2captcha RecaptchaV2TaskProxyless websiteURL websiteKey recaptchaDataSValue isInvisible userAgent cookies apiDomain
2captcha RecaptchaV2EnterpriseTaskProxyless websiteURL websiteKey enterprisePayload isInvisible userAgent cookies \
    apiDomain
2captcha RecaptchaV3TaskProxyless websiteURL websiteKey minScore pageAction isEnterprise apiDomain
2captcha RotateTask body angle comment imgInstructions
2captcha TemuImageTask image parts
2captcha TencentTaskProxyless websiteURL appId captchaScript
2captcha TextCaptchaTask comment
2captcha TspdTask websiteURL tspdCookie htmlPageBase64 userAgent proxyType proxyAddress proxyPort
2captcha VKCaptchaTask redirectUri userAgent proxyType proxyAddress proxyPort
2captcha VKCaptchaImageTask image steps
2captcha YandexSmartCaptchaTaskProxyless websiteURL websiteKey userAgent cookies
2captcha SmartCaptchaTask image imgInstructions comment
2captcha PazlCaptchaTask image task
2captcha YidunTaskProxyless websiteURL websiteKey userAgent yidunGetLib yidunApiServerSubdomain challenge hcg hct
capmonster CustomTask:Basilisk websiteURL websiteKey userAgent
capmonster CustomTask:alibaba websiteURL metadata userAgent
capmonster CustomTask:altcha websiteURL websiteKey metadata userAgent
capmonster CustomTask:DataDome websiteURL metadata proxyType proxyAddress proxyPort userAgent
capmonster CustomTask:friendly websiteURL websiteKey metadata userAgent
capmonster CustomTask:HUNT websiteURL metadata userAgent
capmonster CustomTask:Imperva websiteURL metadata userAgent
capmonster CustomTask:TenDI websiteURL websiteKey metadata userAgent
capmonster CustomTask:tspd websiteURL metadata userAgent
capmonster CustomTask:Castle websiteURL websiteKey metadata userAgent
capmonster CustomTask:Temu websiteURL metadata userAgent
capmonster AmazonTask websiteURL websiteKey captchaScript challengeScript context iv cookieSolution userAgent
capmonster ComplexImageTask class imageUrls imagesBase64 metadata userAgent websiteURL
capmonster ImageToTextTask body capMonsterModule CapMonsterModule recognizingThreshold case numeric math
capmonster FunCaptchaTask websiteURL websitePublicKey data funcaptchaApiJSSubdomain userAgent cookies
capmonster GeeTestTask websiteURL gt challenge geetestApiServerSubdomain geetestGetLib userAgent version \
    initParameters
capmonster MTCaptchaTask websiteURL websiteKey pageAction isInvisible userAgent
capmonster RecaptchaV2Task websiteURL websiteKey recaptchaDataSValue userAgent cookies isInvisible nocache
capmonster RecaptchaV2EnterpriseTask websiteURL websiteKey pageAction enterprisePayload apiDomain userAgent cookies
capmonster RecaptchaV3EnterpriseTask websiteURL websiteKey minScore pageAction
capmonster HCaptchaTask websiteURL websiteKey isInvisible data userAgent cookies fallbackToActualUA
capmonster TurnstileTask websiteURL websiteKey pageAction userAgent data pageData apiJsUrl cloudflareTaskType
capmonster TurnstileTask websiteURL websiteKey htmlPageBase64 userAgent proxyType proxyAddress proxyPort
capmonster ComplexImageTask:recaptcha websiteURL imagesBase64 imageUrls metadata userAgent
capmonster ComplexImageTask:hcaptcha websiteURL imagesBase64 imageUrls metadata exampleImageUrls exampleImagesBase64 \
    userAgent
capmonster ComplexImageTask:funcaptcha websiteURL imagesBase64 imageUrls metadata userAgent
capmonster ComplexImageTask:recognition websiteURL imagesBase64 metadata
capmonster ProsopoTask websiteURL websiteKey userAgent
capmonster YidunTask websiteURL websiteKey userAgent yidunGetLib yidunApiServerSubdomain challenge hcg hct
anticaptcha AntiGateTask websiteURL templateName variables domainsOfInterest proxyAddress proxyPort
anticaptcha AltchaTask websiteURL challengeURL challengeJSON proxyType proxyAddress proxyPort
anticaptcha AmazonTask websiteURL websiteKey iv context captchaScript challengeScript proxyType proxyAddress proxyPort
anticaptcha FriendlyCaptchaTask websiteURL websiteKey proxyType proxyAddress proxyPort
anticaptcha FunCaptchaTask websiteURL websitePublicKey proxyType proxyAddress proxyPort userAgent \
    funcaptchaApiJSSubdomain data
anticaptcha GeeTestTaskProxyless websiteURL gt challenge geetestApiServerSubdomain geetestGetLib version \
    initParameters
anticaptcha ImageToCoordinatesTask body comment mode websiteURL
anticaptcha ImageToTextTask body phrase case numeric math minLength maxLength comment websiteURL languagePool
anticaptcha RecaptchaV2Task websiteURL websiteKey recaptchaDataSValue cookies isInvisible proxyType proxyAddress \
    proxyPort userAgent
anticaptcha RecaptchaV2EnterpriseTaskProxyless websiteURL websiteKey enterprisePayload isInvisible apiDomain
anticaptcha RecaptchaV3TaskProxyless websiteURL websiteKey minScore pageAction isEnterprise apiDomain
anticaptcha TurnstileTaskProxyless websiteURL websiteKey action cData chlPageData turnstileCData
classic base64 body phrase regsense numeric calc min_len max_len language lang textinstructions imginstructions
classic userrecaptcha googlekey pageurl domain invisible data-s userAgent proxy proxytype cookies enterprise action \
    min_score version
classic turnstile sitekey pageurl action data pagedata proxy proxytype
classic amazon_waf sitekey iv context pageurl challenge_script captcha_script jsapi_script proxy proxytype
classic tencent app_id pageurl captcha_script proxy proxytype
classic cutcaptcha misery_key api_key pageurl
classic lemin captcha_id pageurl div_id api_server apiServer
classic datadome captcha_url pageurl userAgent proxy proxytype
classic mt_captcha sitekey pageurl
classic altcha pageurl challenge_url challenge_json
classic friendly_captcha sitekey pageurl version module_script nomodule_script
classic prosopo sitekey pageurl
classic atb_captcha app_id api_server pageurl
classic geetest gt challenge pageurl api_server offline new_captcha userAgent
classic geetest_v4 captcha_id pageurl risk_type
classic funcaptcha publickey pageurl surl data data[blob] userAgent
classic keycaptcha s_s_c_user_id s_s_c_session_id s_s_c_web_server_sign s_s_c_web_server_sign2 pageurl
classic capy captchakey pageurl api_server version
classic rotatecaptcha body angle
classic captchafox sitekey pageurl proxy proxytype useragent api_server
classic temuimage body part1 part2 part3
classic vkimage body steps
classic vkcaptcha redirect_uri userAgent proxy proxytype
classic yandex sitekey pageurl
classic cybersiara master_url_id pageurl userAgent
classic tspd pageurl tspd_cookie html_page_base64 userAgent proxy proxytype
classic hcaptcha sitekey pageurl invisible data userAgent domain proxy proxytype
classic cloudflare_challenge pageurl proxy proxytype userAgent
classic bls body instructions image_base64_1 image_base64_9 textinstructions
classic audio body lang
";

/// Each row as service, type or method, and parameters.
fn documented() -> impl Iterator<Item = (&'static str, &'static str, Vec<&'static str>)> {
    DOCUMENTED.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.collect()))
    })
}

fn value_of(name: &str) -> &'static str {
    match name {
        "websiteURL" | "pageurl" => PAGE,
        "metadata" | "enterprisePayload" | "variables" => "{\"a\":\"b\"}",
        "initParameters" => "{\"riskType\":\"slide\"}",
        "body" | "image" | "imgInstructions" | "imginstructions" | "imageBackground" | "background" => {
            "iVBORw0KGgo="
        }
        "isInvisible" | "isEnterprise" | "phrase" | "case" | "math" | "invisible" | "enterprise" => "1",
        "cloudflareTaskType" => "token",
        "imgType" => "funcaptcha",
        "proxy" => "u:p@203.0.113.7:80",
        "proxyAddress" => "203.0.113.7",
        "proxyPort" => "80",
        "proxyType" | "proxytype" => "http",
        _ => "2",
    }
}

/// The parameters, with a version for a type that has several.
fn params_of(kind: &str, names: &[&str]) -> MeantParams {
    let mut params_of: MeantParams =
        names.iter().map(|name| ((*name).to_owned(), Param::from(value_of(name)))).collect();
    match (kind, params_of.contains_key("version")) {
        ("userrecaptcha", true) => _ = params_of.insert("version".into(), Param::from("v3")),
        ("GeeTestTask" | "GeeTestTaskProxyless", true) => {
            _ = params_of.insert("version".into(), Param::from("3"));
        }
        _ => {}
    }
    // Two names of one thing are two orders.
    for (one, other) in [
        ("data", "data[blob]"),
        ("cData", "turnstileCData"),
        ("api_server", "apiServer"),
        ("gt", "captchaId"),
        ("reeseScriptUrl", "reeseScriptURL"),
        ("capMonsterModule", "CapMonsterModule"),
    ] {
        if params_of.contains_key(other) {
            params_of.remove(one);
        }
    }
    if params_of.contains_key("captchaId") && kind.starts_with("GeeTest") {
        params_of.remove("challenge");
    }
    params_of
}

#[test]
fn nothing_that_a_service_documents_is_taken_for_a_slip() {
    let mut wrong = Vec::new();
    for (service, named, names) in documented() {
        let (kind, class) = named.split_once(':').unwrap_or((named, ""));
        let mut params = params_of(kind, &names);
        if !class.is_empty() {
            params.insert("class".into(), Param::from(class));
        }
        let mut results = vec![meaning(kind, &params, &kinds).map(drop)];
        if service != "classic" {
            let fields = params.iter().map(|(name, value)| (name.clone(), task::written(value).unwrap()));
            let mut fields: Map<String, Value> = fields.collect();
            fields.insert("type".into(), kind.into());
            let wanted = task::understand(&fields).unwrap();
            results.push(meaning(&wanted.kind, &wanted.params, &kinds).map(drop));
        }
        // Each alone, as an order that leaves the others out has it.
        for (name, value) in &params {
            let one = BTreeMap::from([(name.clone(), value.clone())]);
            results.push(meaning(kind, &one, &kinds).map(drop));
        }
        wrong.extend(
            results.into_iter().filter_map(Result::err).map(|why| format!("{service} {named}: {why}")),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_client_that_sends_the_parameters_of_all_kinds_has_not_misspelt_any() {
    let names: std::collections::BTreeSet<&str> = documented().flat_map(|(_, _, names)| names).collect();
    let mut wrong = Vec::new();
    for kind in crate::kinds::kinds() {
        for name in &names {
            let one = params(&[(name, value_of(name))]);
            match meaning(&kind.name, &one, &kinds) {
                // In another dress it is the known one.
                Err(BadRequest::MisspeltParam { meant, .. }) if squeezed(&meant) == squeezed(name) => {}
                Err(why @ (BadRequest::MisspeltParam { .. } | BadRequest::MisspeltKind { .. })) => {
                    wrong.push(format!("{} {name}: {why}", kind.name));
                }
                _ => {}
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
